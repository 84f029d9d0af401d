"""The retrieval agent: it thinks, looks facts up, and answers; the same procedure serves, is trained and is evaluated."""
