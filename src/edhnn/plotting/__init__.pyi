from .dataset import draw as draw
from .diffusion import Look as Look
from .diffusion import diffusion_picture as diffusion_picture
from .style import save_figure as save_figure
from .training import confusion_picture as confusion_picture
from .training import error_picture as error_picture
from .training import learning_curve as learning_curve
