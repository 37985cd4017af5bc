"""Operations on a whole store: prune, verify, salvage, copy, export."""
