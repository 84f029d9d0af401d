"""What is known of each agent harness, as data: how its tools are called and what they do, and how it prints results.

Add a harness: one row. Texts are compared in lower case. What several harnesses print stands with the first that did.
"""

from collections.abc import Iterable

from msgspec import Struct

from turnout.signals.calls.programs import words
from turnout.signals.observation import ToolKind


class Harness(Struct, frozen=True):
    """One harness.

    `shells`: tools whose argument is a command line or an argument list. `tools`: the others by kind. `editors`: tools that
    read or edit by their `command` argument. `delegates`: tools that hand work to another agent. `silent_success`: shell tools
    that flag every failure, so that an unflagged result went well. `transcripts`: pseudo tools that print what was done, with
    what shows an edit. `text_results`: how user messages begin that are results, with the tool ("?": unknown). `answers`: how
    results of its tools begin, with the kind. `timed_out`, `timed_out_behind`: how a stopped call is told, before the output
    and behind it. `aborted`: how a call is told that ended through no fault of its own. `truncated`: how cut output is marked.
    `declined`: how results begin of what the user did not allow.
    """

    name: str
    shells: str = ""
    tools: dict[ToolKind, str] = {}
    editors: str = ""
    delegates: str = ""
    silent_success: str = ""
    transcripts: dict[str, tuple[str, ...]] = {}
    text_results: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, ToolKind], ...] = ()
    timed_out: tuple[str, ...] = ()
    timed_out_behind: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()


HARNESSES: tuple[Harness, ...] = (
    Harness(
        "Claude Code",
        shells="bash powershell",
        silent_success="Bash",
        tools={
            "read": """read view notebookread bashoutput taskoutput webfetch ls listmcpresources readmcpresource
                listmcpresourcestool readmcpresourcetool readmcpresourcedirtool""",
            "search": "grep glob toolsearch websearch lsp",
            "write": "write filewrite",
            "edit": "edit multiedit notebookedit",
            "plan": """todowrite todoread exitplanmode enterplanmode exit_plan_mode taskcreate taskupdate tasklist taskget""",
            "other": """task agent skill slashcommand askuserquestion killshell killbash taskstop sendmessage structuredoutput
                schedulewakeup monitor""",
        },
        delegates="task agent",
        answers=(("todos have been modified", "plan"),),
        timed_out=("command timed out after", "command timed out", "error: command timed out"),
        timed_out_behind=("command timed out after",),
        aborted=("error: no such tool available because the stream", "the tool call was aborted"),
        truncated=(
            "... [output truncated",
            "[output truncated",
            "output too large",
            "[truncated",
            "characters truncated] ...",
        ),
        declined=(
            "the user doesn't want to proceed with this tool use",
            "the user doesn't want to take this action right now",
            "[request interrupted by user",
            "interrupted by user",
            "permission to use",
            "tool use was rejected",
        ),
    ),
    Harness(
        "Codex",
        shells="shell shell_command local_shell local_shell_call exec_command container.exec exec unified_exec",
        tools={
            "read": "view_image list_dir read_file list_mcp_resources read_mcp_resource read_thread",
            "search": "grep_files web_search",
            "edit": "apply_patch applypatch",
            "plan": "update_plan",
            "execute": "write_stdin js_repl",
            "other": "spawn_agent wait_agent close_agent send_message request_user_input list_agents view_plan",
        },
        delegates="spawn_agent wait_agent",
        answers=(("success. updated the following files", "edit"),),
        timed_out=("exec command timed out",),
        truncated=("[... omitted ", "tokens truncated...", "total output lines:"),
        declined=(
            "exec command rejected by user",
            "patch rejected by user",
            "command rejected by user",
            "request rejected by user",
            "rejected by user",
            "aborted by user",
        ),
    ),
    Harness(
        "opencode",
        shells="bash",
        tools={
            "read": "read list webfetch",
            "search": "grep glob codesearch websearch",
            "write": "write",
            "edit": "edit patch",
            "plan": "todowrite todoread plan_exit plan_enter",
            "other": "task question skill",
        },
        delegates="task",
        timed_out=(
            "bash tool terminated command after exceeding timeout",
            "shell tool terminated command after exceeding timeout",
        ),
        timed_out_behind=(
            "bash tool terminated command after exceeding timeout",
            "shell tool terminated command after exceeding timeout",
        ),
        aborted=(
            "tool execution aborted",
            "tool execution was aborted",
            "tool execution was interrupted",
            "execution aborted",
        ),
        truncated=("(output too long", "... (output truncated"),
        declined=(
            "the user has specified a rule which prevents you from using this specific tool call",
            "the user rejected",
            "error: the user rejected",
            "the operation was rejected by the user",
            "user aborted the command",
        ),
    ),
    Harness(
        "mini-swe-agent",
        shells="bash",
        text_results=(("<returncode>", "bash"), ("the last command <command>", "bash")),
        timed_out=("the last command <command>",),
        truncated=("the output of your last command was too long",),
    ),
    Harness(
        "SWE-agent",
        shells="bash execute_bash",
        editors="str_replace_editor",
        tools={
            "read": "open open_file goto scroll_up scroll_down",
            "search": "search_dir search_file find_file",
            "write": "create",
            "edit": "insert undo_edit",
            "other": "submit",
        },
        text_results=(
            ("observation:", "?"),
            ("your command ran successfully and did not produce any output", "bash"),
        ),
        answers=(("file created successfully at", "write"),),
        timed_out=("execution timed out", "command was cancelled because it took more than"),
        timed_out_behind=("command was cancelled because it took more than",),
        truncated=("<response clipped>",),
    ),
    Harness(
        "OpenHands",
        shells="execute_bash terminal terminal_execute",
        editors="str_replace_editor text_editor str_replace_based_edit_tool editor",
        tools={
            "execute": "execute_ipython_cell ipython",
            "edit": "edit_file",
            "plan": "think task_tracker",
            "other": "finish browser browser_action",
        },
        text_results=(("execution result of [", "bash"),),
        timed_out=("[the command timed out", "[the command has no new output after", "the command timed out"),
        timed_out_behind=("[the command timed out", "[the command has no new output after"),
    ),
    Harness(
        "aider",
        transcripts={
            "aider_output": (
                "Applied edit to ",
                "SEARCH/REPLACE block",
                "edit format",
                "<<<<<<< SEARCH",
                ">>>>>> REPLACE",
            )
        },
        answers=(("applied edit to ", "edit"),),
    ),
    Harness(
        "Cline, Roo Code",
        shells="execute_command",
        tools={
            "read": "read_file list_files list_code_definition_names",
            "search": "search_files",
            "write": "write_to_file",
            "edit": "replace_in_file apply_diff insert_content search_and_replace",
            "plan": "update_todo_list",
            "other": "ask_followup_question attempt_completion new_task switch_mode browser_action",
        },
        delegates="new_task",
        text_results=(
            ("[execute_command", "bash"),
            ("[read_file", "read_file"),
            ("[search_files", "search_files"),
            ("[list_files", "list_files"),
            ("[write_to_file", "write_to_file"),
            ("[replace_in_file", "replace_in_file"),
            ("[apply_diff", "apply_diff"),
        ),
        declined=(
            "user rejected",
            "user denied",
            "the user denied",
            "user declined",
            "the user declined",
            "user has rejected",
        ),
    ),
    Harness(
        "Gemini CLI",
        shells="run_shell_command",
        tools={
            "read": "read_file read_many_files list_directory web_fetch",
            "search": "glob search_file_content google_web_search",
            "write": "write_file",
            "edit": "replace",
            "plan": "write_todos",
            "other": "save_memory",
        },
        declined=("user cancelled", "user canceled", "user chose not to", "tool call rejected"),
    ),
    Harness(
        "Cursor",
        shells="run_terminal_cmd run_terminal_command",
        tools={
            "read": "read_file list_dir fetch_rules diff_history",
            "search": "codebase_search grep_search file_search",
            "edit": "edit_file search_replace delete_file",
            "plan": "todo_write todo_read",
        },
    ),
    Harness(
        "Copilot",
        shells="run_in_terminal",
        tools={
            "read": "read_file list_dir get_errors get_terminal_output",
            "search": "semantic_search file_search grep_search",
            "write": "create_file create_directory",
            "edit": "replace_string_in_file multi_replace_string_in_file insert_edit_into_file",
            "plan": "manage_todo_list",
            "other": "kill_terminal",
        },
    ),
    Harness(
        "Windsurf",
        shells="run_command",
        tools={
            "read": "view_file view_code_item command_status",
            "search": "find_by_name",
            "edit": "replace_file_content multi_replace_file_content",
        },
    ),
    Harness(
        "Model Context Protocol servers and others",
        shells="run_bash run_shell bash_command cmd developer__shell command sh zsh process execute_shell",
        editors="str_replace_based_edit",
        tools={
            "read": """readfile read_multiple_files open cat read_background get_output fetch fetch_url listdir directory_tree
                get_file_info get_diagnostics getdiagnostics lsp_diagnostics browser_snapshot""",
            "search": "find_files search_code ripgrep rg lsp_symbols find_references",
            "write": "new_file save_file mkdir",
            "edit": """multi_edit edit_notebook str_replace editfile edit_block move_file rename_file copy_file""",
            "plan": "todo plan thinking sequentialthinking",
            "execute": "python run_python python_exec run_code code_interpreter repl execute_code send_input runtests",
            "test": "run_tests runtest test run_test",
            "other": "kill_shell memory calculate",
        },
        delegates="dispatch_agent delegate",
        text_results=(("[result of tool call ", "?"),),
        answers=(("todo list", "plan"), ("successfully wrote", "write")),
        timed_out=("operation timed out", "tool execution timed out", "timed out after"),
    ),
)


def _all(field: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for harness in HARNESSES for text in getattr(harness, field)))


def _named(field: str) -> Iterable[str]:
    return (word for harness in HARNESSES for word in words(getattr(harness, field)))


SHELL_TOOLS = frozenset(_named("shells"))
"""Tools whose argument is a shell command line or argument list."""

TOOLS: dict[str, ToolKind] = {
    word: kind for harness in HARNESSES for kind, row in harness.tools.items() for word in words(row)
}
"""Kind of every other tool by its name in lower case."""

EDITORS = frozenset(_named("editors"))
"""Tools that read or edit by their `command` argument."""

DELEGATES = frozenset(_named("delegates"))
"""Tools that hand work to another agent: what it reports, good or bad, is told of its own work."""

SILENT_SUCCESS = frozenset(_named("silent_success"))
"""Shell tools of harnesses that always flag a non-zero exit: without a flag the exit code was zero."""

TRANSCRIPTS = {tool: marks for harness in HARNESSES for tool, marks in harness.transcripts.items()}
"""Pseudo tools of harnesses that print what they did instead of calling tools, and what shows that they edited."""

TEXT_RESULTS = tuple(pair for harness in HARNESSES for pair in harness.text_results)
"""User messages of agents without tool calling that are results of tools: how they begin, and the tool."""

ANSWERS = tuple(pair for harness in HARNESSES for pair in harness.answers)
"""How results of known tools begin: their kind where the call is not there."""

TIMED_OUT = _all("timed_out")
TIMED_OUT_AT_THE_END = _all("timed_out_behind")
"""How harnesses say that they stopped a call: at a line's beginning, and in lines that follow the output."""

ABORTED = _all("aborted")
"""How harnesses say that a call did not come to an end through no fault of its own."""

TRUNCATED = _all("truncated")
"""How harnesses say that output was cut."""

DECLINED = _all("declined")
"""How a result begins of a tool that the user did not allow or interrupted."""
