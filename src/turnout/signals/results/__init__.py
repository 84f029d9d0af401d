"""What one result shows: its form, the lines that tell what failed, test summaries. `verdict.judge` makes the Observation."""
