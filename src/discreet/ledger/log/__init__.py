"""Keys, signatures, the Merkle tree and proofs."""
