"""The exponentiated dual averaging method: [Xiao10] section 2.1.

    w_j = exp(-s_j / (gamma sqrt t)) / Z,

dual averaging on the simplex with h the negative entropy (6); with a KL penalty the prior and
t strength come in as in section 2.2.
"""

from streamlearn.rules.dual_averaging cimport DualAveraging

from streamlearn.penalties.geometries import KL
from streamlearn.rules.needs import not_simplex, simplex


cdef class ExponentiatedDualAveraging(DualAveraging):
    """Exponentiated gradient as dual averaging ([Xiao10] section 2.1), on the simplex.

    The simplex is over the slots known when an event is scored, that event's included; a new slot
    enters with gradient sum 0. The normalizer takes a pass over all slots: O(n) an event.
    """

    _names = ("gamma",)
    _examples = ((), (0.3,))
    needs = (not_simplex, simplex)

    def __init__(self, gamma=1.0):
        DualAveraging.__init__(self, gamma)

    def start(self):
        self.geometry = self.penalty if isinstance(self.penalty, KL) else KL(0.0)
        DualAveraging.start(self)
