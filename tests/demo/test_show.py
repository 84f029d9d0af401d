"""What a person sees of the demo."""

from turnout.demo.show import flowing


def test_paragraphs_and_items_flow_and_stay_apart():
    said = "Two faults:\n- the first, which goes\n  on here\n- the second\nNothing is\nleft open.\n\nShall I\ngo on?\n"
    assert flowing(said).splitlines() == [
        "Two faults:",
        "- the first, which goes on here",
        "- the second",
        "Nothing is left open.",
        "",
        "Shall I go on?",
    ]
