"""Python objects as plain values and back, for adapters whose framework stores any.

A framework that would pickle its state gets a `TypeTable` instead: it holds values of
Python, of the framework, and of the classes that the caller has allowed. It needs
pydantic, as such frameworks do.
"""

from holdfast.operations.objects.python_types import python_shapes, shape_of_one
from holdfast.operations.objects.shapes import TYPE, Fields, NotStorable, Shape
from holdfast.operations.objects.table import NATIVE, TypeTable

__all__ = [
    "NATIVE",
    "TYPE",
    "Fields",
    "NotStorable",
    "Shape",
    "TypeTable",
    "python_shapes",
    "shape_of_one",
]
