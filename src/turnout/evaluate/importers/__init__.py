"""Importers: recordings of other programs become turns and outcomes of the ledger."""
