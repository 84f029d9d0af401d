"""The review: models answer questions, each scores the others' answers, and every call is paid once.

`questions` and `answers` read what is asked and what was answered before, `prompt` and `blind` say how an answer is scored,
`design` says by whom. `journal` keeps every finished call, `budget` and `calling` make the missing ones, `running` drives them,
and `scores` is a pure function of the plan and the journal.
"""
