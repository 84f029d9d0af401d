"""What chains of models would have done on recorded answers, beside simpler ways of asking several models."""
