/** Packages that a program may import without any effect on what is found about it. */
import { MODELLED } from './names'

/** Modules of Python's standard library (`sys.stdlib_module_names` of Python 3.9 to 3.13). */
const STANDARD_MODULES: ReadonlySet<string> = new Set(
  `
  __future__ abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins
  bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser
  contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email
  encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt
  getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress
  itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib
  msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle
  pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc
  pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex
  shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics
  string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this
  threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata
  unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport
  zlib zoneinfo
  `
    .trim()
    .split(/\s+/),
)

/** Widely used packages whose calls train no model. */
const OTHER_PACKAGES: ReadonlySet<string> = new Set(
  `
  IPython PIL absl aiohttp albumentations altair anthropic apex attr attrs audioread av bitsandbytes bokeh boto3 botocore bs4
  cachetools chex clearml click cloudpickle colorama comet_ml cupy cv2 dask datasets decord dgl dill distrax docker docopt dotenv
  easydict einops evaluate faiss fastapi fastcore filelock fire flash_attn flask fsspec ftfy fvcore gdown google gradio grain gym
  gymnasium h5py httpx huggingface_hub hydra imageio imgaug immutabledict inflect iopath ipdb ipywidgets jaxlib jaxtyping jieba
  jiwer joblib jsonargparse jsonlines kornia librosa lmdb loguru lpips lxml markdown matplotlib ml_collections mlflow monai msgpack
  multiprocess natsort nbformat neptune networkx nltk notebook numba numexpr numpy nvidia omegaconf onnx onnxruntime open3d openai
  opencv openpyxl opt_einsum optuna orjson packaging pandas papermill parameterized patsy pkg_resources plotly polars portalocker
  prettytable psutil pyarrow pycocotools pydantic pydicom pygame pynvml pyparsing pytest pytorch_fid pywt regex requests rich rouge
  rouge_score sacrebleu safetensors scipy seaborn sentencepiece setproctitle setuptools shapely simple_parsing simplejson six
  skimage sklearn_pandas skopt sortedcontainers soundfile spacy sqlalchemy statsmodels streamlit submitit sympy tabulate tap
  tensorboard tensorboardX tensorflow_datasets tensorflow_hub tensorflow_probability tensorflow_text termcolor textdistance thop
  tiktoken tokenizers toml tomli torch_geometric torch_scatter torch_sparse torch_xla torchdata torchinfo torchmetrics torchsummary
  torchtext torchvision tornado tqdm trimesh triton typeguard typer typing_extensions tyro ujson unidecode uvicorn visdom wandb
  webdataset websockets wget xformers xlrd yacs yaml zarr zmq
  `
    .trim()
    .split(/\s+/),
)

/** Whether a top-level package is known, so that its calls hide no training. */
export const isKnownPackage = (name: string): boolean =>
  MODELLED.has(name) || STANDARD_MODULES.has(name) || OTHER_PACKAGES.has(name)
