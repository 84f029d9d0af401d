"""The demo: recorded coding sessions, played by scripted models and driven through a real gateway by the official clients.

What the models say and what the tools return is recorded; nothing is executed. Who is asked, why, and what it costs is not: the
gateway decides and records it as it does for any other program.
"""
