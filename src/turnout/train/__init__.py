"""PathRouter: training of retrieval agents whose credit depends on the evidence path as well as on the answer (arXiv 2606.16409).

What reads no tensor (scores, credit, roles of tokens, data, worlds) needs no torch; the trainer is in the extra `train`.
"""
