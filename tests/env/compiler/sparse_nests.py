"""Sparse statements as procedures: small ones of given sizes, and ones of any size."""

from __future__ import annotations

from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower

SPMV = "y(i) = A(i,j) * x(j)"
SPMM = "C(i,j) = A(i,k) * B(k,j)"
SDDMM = "C(i,j) = A(i,j) * B(i,k) * D(k,j)"
MTTKRP = "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)"


def spmv(form="csr"):
    return lower(program(SPMV, {"A": form}))


def spmm(form="csr"):
    return lower(program(SPMM, {"A": form}))


def sddmm(form="csr"):
    return lower(program(SDDMM, {"A": form}, structure="A"))


def mttkrp():
    return lower(program(MTTKRP, {"T": "csf"}))


def added():
    """The sum of two matrices by rows."""
    return lower(program("C(i,j) = A(i,j) + B(i,j)", dict.fromkeys("ABC", "csr")))
