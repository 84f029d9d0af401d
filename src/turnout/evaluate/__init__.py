"""Evaluation: what recordings show about signals and routers, and how sure the figures are."""
