"""Proof that the checkers decide rightly: banks of mistakes, single-step mutants, audits."""
