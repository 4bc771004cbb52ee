"""The documentation site: `make docs` builds it into docs/_build, without the network."""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # for `!edhnn`
os.environ["EDHNN_EXAMPLES"] = str(HERE.parent / "examples")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("COLUMNS", "78")
IPYTHON = HERE / "_build" / "ipython"  # not the user's settings; the kernel warns about a port on this machine
(IPYTHON / "profile_default").mkdir(parents=True, exist_ok=True)
(IPYTHON / "profile_default" / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = str(IPYTHON)
logging.getLogger("traitlets").setLevel(logging.WARNING)  # one line per page otherwise
os.environ["TTY_COMPATIBLE"] = "0"  # no colours and no progress bars in the pages

import edhnn

project = "edhnn"
author = "The edhnn developers"
copyright = author  # noqa: A001
version = release = edhnn.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "edhnn_site",
]
exclude_patterns = ["_build", "_ext", "jupyter_execute", "**.ipynb_checkpoints"]
suppress_warnings = ["myst.header"]  # the generated tables of evidence start with what they find
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "smartquotes"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"edhnn {version}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
