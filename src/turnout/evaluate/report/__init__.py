"""Reports: one HTML file each, with the figures, the rows they were made from, and nothing loaded from elsewhere."""
