"""What users call and install is what they always could."""

from __future__ import annotations

import frozen
from frozen import public_names


def test_every_public_name_is_as_it_was():
    frozen.compare("api.txt", public_names.listing())
