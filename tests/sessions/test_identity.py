"""Who a turn belongs to: the ladder, rung by rung, and what must never become an identity."""

import json

import pytest

from turnout.conversation import Conversation, Message, Settings, Text, Tool
from turnout.sessions.identity import fingerprint, identify
from turnout.wire import CODECS

TOOLS = (Tool("Bash"), Tool("Read"))


def opened(
    text: str = "Fix the test", system: str = "You are an agent.", tools: tuple[Tool, ...] = TOOLS
) -> Conversation:
    return Conversation((Message("user", (Text(text),)),), (Text(system),), tools)


def who(headers: dict[bytes, bytes], settings: Settings | None = None, conversation: Conversation | None = None):
    return identify(headers, conversation or opened(), settings or Settings())


def test_our_own_header_wins_over_every_other():
    lane, _ = who({b"x-turnout-session": b"mine", b"x-turnout-agent": b"a1", b"x-claude-code-session-id": b"theirs"})
    assert (lane.rung, lane.session, lane.agent) == ("header", "mine", "a1")


def test_our_own_session_keeps_the_agents_that_a_program_tells_apart():
    ours = {b"x-turnout-session": b"mine"}
    main, info = who({**ours, b"x-claude-code-session-id": b"s1"})
    assert (main.rung, main.session, main.agent, info.program) == ("header", "mine", "", "claude-code")
    child = {b"x-claude-code-session-id": b"s1", b"x-claude-code-agent-id": b"a7"}
    lane, info = who({**ours, **child})
    assert (lane.session, lane.agent, info.kind) == ("mine", "a7", "subagent")
    _, info = who({**ours, b"x-claude-code-session-id": b"s1"}, conversation=opened(tools=()))
    assert info.kind == "background"
    child = {b"x-session-affinity": b"own", b"x-parent-session-id": b"theirs"}
    lane, info = who({**ours, **child})
    assert (lane.session, lane.agent, info.kind, info.parent) == ("mine", "own", "subagent", "theirs")
    metadata = Settings(user="user_1_account_2_session_01234567-89ab", user_field="metadata.user_id")
    lane, info = who(ours, metadata)
    assert (lane.session, lane.agent, info.program) == ("mine", "", "claude-code")


def test_claude_code_main_agent_and_sub_agent_have_lanes_of_their_own():
    main, info = who({b"x-claude-code-session-id": b"s1"})
    child, child_info = who(
        {b"x-claude-code-session-id": b"s1", b"x-claude-code-agent-id": b"a7", b"x-claude-code-parent-agent-id": b"a1"}
    )
    assert (main.rung, main.session, main.agent, info.kind) == ("claude_code", "s1", "", "main")
    assert (child.session, child.agent, child_info.kind, child_info.parent) == ("s1", "a7", "subagent", "a1")
    assert main.key != child.key


def test_a_title_call_of_the_same_session_leaves_the_main_lane_alone():
    main, _ = who({b"x-claude-code-session-id": b"s1"})
    title, info = who({b"x-claude-code-session-id": b"s1"}, conversation=opened(tools=()))
    assert info.kind == "background"
    assert title.key != main.key


def test_codex_metadata_names_root_and_spawned_threads():
    root, _ = who({b"x-codex-turn-metadata": json.dumps({"session_id": "s", "thread_id": "s"}).encode()})
    child_meta = {"session_id": "s", "thread_id": "t2", "parent_thread_id": "s", "subagent_kind": "thread_spawn"}
    child, info = who({b"x-codex-turn-metadata": json.dumps(child_meta).encode()})
    assert (root.rung, root.session, root.agent) == ("codex", "s", "")
    assert (child.session, child.agent, info.kind, info.parent) == ("s", "t2", "subagent", "s")


UNNAMED: list[dict[bytes, bytes]] = [
    {b"x-turnout-session": b"s", b"x-turnout-parent-agent": b"a1"},
    {b"x-codex-turn-metadata": json.dumps({"session_id": "s", "thread_id": "s", "subagent_kind": "review"}).encode()},
    {b"session-id": b"s", b"x-openai-subagent": b"collab_spawn"},
]


@pytest.mark.parametrize("headers", UNNAMED)
def test_a_child_that_does_not_say_which_is_kept_out_of_its_parents_lane(headers: dict[bytes, bytes]):
    lane, info = who(headers)
    parent, _ = who({b"x-turnout-session": b"s"} if b"x-turnout-session" in headers else {b"session-id": b"s"})
    assert (info.kind, lane.session, parent.session) == ("subagent", "s", "s")
    assert lane.key != parent.key
    assert lane.identified
    assert not lane.confident
    assert parent.confident


def test_codex_compaction_follows_its_parent():
    meta = {"session_id": "s", "thread_id": "t9", "parent_thread_id": "s", "subagent_kind": "compact"}
    lane, info = who({b"x-codex-turn-metadata": json.dumps(meta).encode()})
    root, _ = who({b"session-id": b"s", b"thread-id": b"s"})
    assert info.kind == "background"
    assert lane.key == root.key


def test_five_codex_turns_with_one_session_id_are_one_session():
    lanes = {
        who({b"session-id": b"s", b"thread-id": b"s", b"x-client-request-id": bytes([48 + i])})[0].key for i in range(5)
    }
    assert len(lanes) == 1


@pytest.mark.parametrize(
    ("user_id", "session"),
    [
        ("user_ab12_account_7c_session_0f6a1c9e-1111-2222-3333-444455556666", "0f6a1c9e-1111-2222-3333-444455556666"),
        ('{"device_id":"d","account_uuid":"a","session_id":"s-42"}', "s-42"),
    ],
)
def test_both_forms_of_metadata_user_id_hold_the_session(user_id: str, session: str):
    lane, _ = who({}, Settings(user=user_id, user_field="metadata.user_id"))
    assert (lane.rung, lane.session) == ("metadata", session)


@pytest.mark.parametrize(
    ("headers", "rung"),
    [
        ({b"x-opencode-session": b"o"}, "opencode"),
        ({b"x-session-affinity": b"o"}, "affinity"),
        ({b"x-session-id": b"o"}, "session_header"),
    ],
)
def test_other_agents_headers(headers: dict[bytes, bytes], rung: str):
    lane, _ = who(headers)
    assert (lane.rung, lane.session) == (rung, "o")


OPENCODE = {b"user-agent": b"opencode/1.18.33 ai-sdk/provider-utils/4.0.23", b"x-session-affinity": b"ses_1"}


@pytest.mark.parametrize("headers", [OPENCODE, {b"x-opencode-session": b"ses_1"}])
def test_opencodes_title_call_leaves_the_main_lane_alone(headers: dict[bytes, bytes]):
    main, info = who(headers)
    title, title_info = who(headers, conversation=opened(tools=()))
    assert (info.program, info.kind, title_info.kind) == ("opencode", "main", "background")
    assert (main.session, title.session) == ("ses_1", "ses_1")
    assert title.key != main.key


def test_opencodes_sub_agent_has_a_session_and_a_parent():
    lane, info = who(OPENCODE | {b"x-session-affinity": b"ses_2", b"x-parent-session-id": b"ses_1"})
    assert (lane.session, info.program, info.kind, info.parent) == ("ses_2", "opencode", "subagent", "ses_1")


def test_a_program_without_tools_is_no_background_call():
    _, info = who({b"x-session-affinity": b"o"}, conversation=opened(tools=()))
    assert info.kind == "main"


@pytest.mark.parametrize("blank", [b"", b"   ", b"\t"])
def test_a_blank_header_is_absent(blank: bytes):
    lane, _ = who({b"x-turnout-session": blank, b"x-session-id": blank})
    assert lane.rung == "fingerprint"


def test_a_request_id_is_no_identity():
    first, _ = who({b"x-request-id": b"1", b"x-client-request-id": b"1"})
    second, _ = who({b"x-request-id": b"2", b"x-client-request-id": b"2"})
    assert first == second


def test_the_cache_key_identifies_where_nothing_better_does():
    lane, _ = who({}, Settings(prompt_cache_key="k"))
    assert (lane.rung, lane.session) == ("cache_key", "k")


def test_tenants_never_share_a_lane():
    one = identify({b"x-session-id": b"s"}, opened(), Settings(), "acme")[0]
    two = identify({b"x-session-id": b"s"}, opened(), Settings(), "other")[0]
    assert one.key != two.key


def test_a_fingerprint_is_marked_as_weak_and_ignores_volatile_lines():
    lane, _ = who({})
    assert lane.rung == "fingerprint"
    assert not lane.confident
    with_clock = "You are an agent.\n"
    a = fingerprint(opened(system=with_clock + "Today's date: 2026-01-01"))
    b = fingerprint(opened(system=with_clock + "Today's date: 2026-01-02"))
    assert a == b != fingerprint(opened(system="You are another agent.\n"))


def test_a_fingerprint_looks_at_the_users_words_not_at_the_harness():
    reminder = Text("<system-reminder>The clock says 12:31</system-reminder>")
    first = Conversation((Message("user", (reminder, Text("Fix the test"))),), (Text("s"),), TOOLS)
    second = Conversation(
        (Message("user", (Text("<system-reminder>other</system-reminder>"), Text("Fix the test"))),),
        (Text("s"),),
        TOOLS,
    )
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(first) != fingerprint(
        Conversation((Message("user", (Text("Write docs"),)),), (Text("s"),), TOOLS)
    )


def test_a_conversation_grows_without_leaving_its_fingerprint():
    start = opened()
    later = Conversation(
        (*start.messages, Message("assistant", (Text("ok"),)), Message("user", (Text("go on"),))), start.system, TOOLS
    )
    assert fingerprint(start) == fingerprint(later)


def test_nothing_to_go_by_is_no_lane():
    lane, _ = identify({}, Conversation(()), Settings())
    assert (lane.rung, lane.key) == ("none", "")


def test_endless_identities_are_bounded():
    lane, _ = who({b"x-session-id": b"s" * 100_000})
    assert len(lane.key) < 500


@pytest.mark.parametrize("raw", [b"not json", b"[]", b'{"session_id": 3}', b"\xff\xfe"])
def test_broken_metadata_is_ignored(raw: bytes):
    lane, _ = who({b"x-codex-turn-metadata": raw})
    assert lane.rung == "fingerprint"


def test_remembering_an_opening_merges_no_sessions_that_open_with_harness_text():
    def request(second: str) -> Conversation:
        reminder = "<system-reminder>The clock says 12:31</system-reminder>"
        body = {"model": "m", "messages": [{"role": "user", "content": reminder}, {"role": "user", "content": second}]}
        return CODECS["openai_chat"].read_request(json.dumps(body).encode()).conversation

    assert (
        len({fingerprint(request("Fix the test")), fingerprint(request("Write docs")), fingerprint(request("x"))}) == 3
    )
