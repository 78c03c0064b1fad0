"""The exponentiated dual averaging method: [Xiao10] section 2.1.

    w_j = exp(-s_j / (gamma sqrt t)) / Z,

which is dual averaging on the simplex where h is the negative entropy (6). With a KL penalty, the
prior and t * strength enter as in section 2.2.
"""

from streamlearn.rules.dual_averaging cimport DualAveraging

from streamlearn.penalties.geometries import KL
from streamlearn.rules.requirements import one_output_on_simplex, simplex


cdef class ExponentiatedDualAveraging(DualAveraging):
    """Exponentiated gradient as dual averaging ([Xiao10] section 2.1), on the simplex.

    The simplex covers the slots known when an event is scored, including the event's own; a new
    slot starts with gradient sum 0. The normalizer makes a pass over all slots: O(n) per event.
    """

    _names = ("gamma",)
    _examples = ((), (0.3,))
    needs = (one_output_on_simplex, simplex)

    def __init__(self, gamma=1.0):
        DualAveraging.__init__(self, gamma)

    def start(self):
        self.geometry = self.penalty if isinstance(self.penalty, KL) else KL(0.0)
        DualAveraging.start(self)
