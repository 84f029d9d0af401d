"""What a model is told that takes over a conversation: the hand-over note, made from what the conversation shows.

    python examples/hand_over.py

Needs no model and no gateway.
"""

from turnout.conversation import Conversation, Message, Text, ToolCall, ToolResult
from turnout.routing.handover.note import handover
from turnout.signals import observe

RED = "<returncode>1</returncode>\n<output>\nE   assert 3 == 4\n=== 1 failed, 4 passed in 0.2s ===\n</output>"


def step(number: int, command: str, printed: str) -> tuple[Message, Message]:
    """A command that an agent ran, and what it printed."""
    call = ToolCall(f"call_{number}", "bash", f'{{"command": "{command}"}}')
    return Message("assistant", (call,)), Message("tool", (ToolResult(call.id, (Text(printed),)),))


conversation = Conversation(
    (
        Message("user", (Text("Repair the clock. Ändere nichts in vendor/."),)),
        *step(1, "pytest -x", RED),
        *step(2, "sed -i 's/3/4/' clock.py", "<returncode>0</returncode>"),
        *step(3, "pytest -x", RED),
        Message("assistant", (Text("The offset may be applied twice."),)),
    )
)
note = handover(conversation, observe(conversation))
print(note.text)
for line in note.lines:
    print(f"{line.about} rests on messages {list(line.messages)}")
