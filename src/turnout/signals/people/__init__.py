"""What user messages say: a person's own words apart from what harnesses put there, and what those ask or complain of."""
