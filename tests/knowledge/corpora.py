"""Small corpora."""

from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document

FILM = Document(
    Passage(
        "film",
        "Lanterns over Harrowmere",
        "Lanterns over Harrowmere is a 1961 drama film directed by Odile Vantorre. It follows three ferry pilots.",
    )
)
DIRECTOR = Document(
    Passage(
        "director",
        "Odile Vantorre",
        "Odile Vantorre (3 May 1919 to 12 August 1988) was a film director. She was born in Port Saltry.",
    )
)
TOWN = Document(Passage("town", "Port Saltry", "Port Saltry is a harbour town known for its rope works."))
FAIR = Document(
    Passage("fair", "Harrowmere", "Harrowmere is a market town on the Tesk. Its lantern fair dates from 1702.")
)
ALL = [FILM, DIRECTOR, TOWN, FAIR]
