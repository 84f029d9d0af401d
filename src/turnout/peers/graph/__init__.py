"""The collaboration graph from scores: relations, how far they can be trusted, and pictures of them."""
