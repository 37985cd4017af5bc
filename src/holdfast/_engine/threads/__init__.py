"""Operations on threads and their checkpoints."""
