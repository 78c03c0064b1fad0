from streamlearn.rules.sparse_mixture import SparseMixture

class TargetedMixture(SparseMixture):
    strength: float
    set_at: float
    speakers: int
