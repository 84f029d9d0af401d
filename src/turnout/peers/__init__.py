"""Models that score one another: the review, the graph it gives, and what routing along it would have done."""
