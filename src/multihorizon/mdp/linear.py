"""Linear systems of Markov chains."""

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.sparse.linalg import splu


def solve(chain: sparse.csr_array, rewards: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    """Solves v = rewards + chain v."""
    system = sparse.csc_array(sparse.eye_array(chain.shape[0]) - chain)
    return np.asarray(splu(system).solve(rewards))
