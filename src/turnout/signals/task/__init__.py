"""What results amount to over a task. `fold.Task` takes them one by one, `progress` says what routers decide by."""
