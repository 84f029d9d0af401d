"""The escalation router: a weak model tries, a judge may call for the strong one."""
