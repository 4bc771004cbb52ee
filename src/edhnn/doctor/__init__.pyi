from .checks import Finding as Finding
from .cost import Forecast as Forecast
from .cost import ModelSize as ModelSize
from .cost import forecast as forecast
from .diagnose import Diagnosis as Diagnosis
from .diagnose import examine as examine
from .summary import facts as facts
