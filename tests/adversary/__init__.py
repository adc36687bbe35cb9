"""The engine and its real actors among hostile hands: models of the cluster, of operators and of clocks, and a judge.

Beside ``tests/simulation``, not in it: there members are driven step by step and the invariants are KIP-125's; here
whole runs are driven from request to request, and the invariants are an operator's. Members are only counted here.
"""
