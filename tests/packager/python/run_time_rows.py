# SPDX-License-Identifier: Apache-2.0
# Rows of run_time_test.py: a package of the tables offline_breakers.cpp and run_time_caches.cpp each, with a first step
# as people write it. `SET` in a step is true where a bundle's variables are set and its data is carried.
from dataclasses import dataclass, field


@dataclass
class Row:
    package: str            # of the table
    requirements: list
    step: str
    asks: str = ""          # without variables it asks for a name that matches; "" none
    writes: str = ""        # without variables it writes a file that matches (home/…, tmp/…, job/…, env/…); "" not looked at
    caches: str = ""        # with them it writes a file that matches, below ${CACHE}
    carried: list = field(default_factory=list)   # (package of the index, its file, path below ${PREFIX})
    more: dict = field(default_factory=dict)      # variables that a remedy names
    torch: bool = False     # the step needs torch
    seconds: int = 60       # without variables it may take so long; some ask again and again for minutes
    environment: dict = field(default_factory=dict)  # in both runs: what a person would have set


VOCABULARIES = "litellm/litellm_core_utils/tokenizers/"
CL100K, O200K = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "fb374d419588a4632f3f557e76b4b70aebbca790"

# A model and its tokenizer, made here, as folder and in the hub's cache under the name org/tiny.
TINY = """
import os, pathlib
def tiny(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(folder)
    LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                 num_key_value_heads=2, vocab_size=3)).save_pretrained(folder)
def cached(name):
    from huggingface_hub import constants
    place = pathlib.Path(constants.HF_HUB_CACHE) / ("models--" + name.replace("/", "--"))
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    tiny(place / "snapshots" / ("0" * 40))
"""

BY_ID = TINY + """
cached("org/tiny")
from transformers import AutoTokenizer, AutoModelForCausalLM
assert AutoTokenizer.from_pretrained("org/tiny")("a b")["input_ids"] == [0, 1]
AutoModelForCausalLM.from_pretrained("org/tiny")
"""

ROWS = [
    Row("tiktoken", ["tiktoken"], """
import tiktoken
words = tiktoken.get_encoding("cl100k_base")
assert words.decode(words.encode("a ship sails")) == "a ship sails"
""", asks=r"openaipublic\.blob", carried=[("litellm", VOCABULARIES + CL100K, "data/tiktoken/" + CL100K)]),

    Row("openai-harmony", ["openai-harmony"], """
from openai_harmony import HarmonyEncodingName, load_harmony_encoding
words = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
assert words.decode(words.encode("a ship sails")) == "a ship sails"
""", asks=r"openaipublic\.blob", carried=[("litellm", VOCABULARIES + O200K, "data/harmony/o200k_base.tiktoken")]),

    Row("nltk", ["nltk"], """
import nltk
try:
    nltk.data.find("tokenizers/punkt_tab")
except LookupError:
    assert nltk.download("punkt_tab", quiet=True)
assert nltk.word_tokenize("Ships sail. They do.") == ["Ships", "sail", ".", "They", "do", "."]
""", asks=r"githubusercontent", carried=[("llama-index-core", "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab",
                                         "data/nltk_data/tokenizers/punkt_tab")]),

    Row("spacy", ["spacy", "click"], """
import spacy
assert len(spacy.blank("en")("a ship sails")) == 3
if not SET:
    spacy.cli.download("en_core_web_sm")
""", asks=r"githubusercontent"),

    Row("litellm", ["litellm"], "import litellm\nassert litellm.model_cost\n", asks=r"githubusercontent"),

    Row("huggingface-hub", ["huggingface_hub"], """
from huggingface_hub import snapshot_download, errors
try:
    snapshot_download("org/tiny")
    raise SystemExit("it was there")
except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
    pass
""", asks=r"huggingface\.co"),

    Row("transformers", ["transformers"], BY_ID, asks=r"huggingface\.co", torch=True),
    Row("transformers", ["transformers==4.57.6"], BY_ID, asks=r"huggingface\.co", torch=True),
    Row("transformers by path", ["transformers"], TINY + """
tiny("tiny")
from transformers import AutoTokenizer, AutoModelForCausalLM
assert AutoTokenizer.from_pretrained("./tiny")("a b")["input_ids"] == [0, 1]
AutoModelForCausalLM.from_pretrained("./tiny")
""", torch=True),
    Row("sentence-transformers", ["sentence-transformers"], TINY + """
cached("org/tiny")
from sentence_transformers import SentenceTransformer
try:
    model = SentenceTransformer("org/tiny", device="cpu")
    model.tokenizer.pad_token = "a"
    assert model.encode(["a b"]).shape == (1, 16)
except OSError:
    assert not SET
""", asks=r"huggingface\.co", torch=True),

    Row("datasets", ["datasets"], """
import pathlib
from datasets import load_dataset
pathlib.Path("rows.csv").write_text("a,b\\n1,2\\n")
assert load_dataset("csv", data_files="rows.csv")["train"].num_rows == 1
try:
    load_dataset("org/rows")
    raise SystemExit("it was there")
except Exception as error:
    print(type(error).__name__)
""", asks=r"huggingface\.co"),

    Row("evaluate", ["evaluate"], """
import pathlib, evaluate
folder = pathlib.Path("mine")
folder.mkdir()
(folder / "mine.py").write_text('''
import datasets
import evaluate
class Mine(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=datasets.Features(
            {"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}))
    def _compute(self, predictions, references):
        return {"same": sum(p == r for p, r in zip(predictions, references))}
''')
assert evaluate.load(str(folder.resolve())).compute(predictions=[1, 2], references=[1, 3]) == {"same": 1}
try:
    evaluate.load("accuracy")
    raise SystemExit("it was there")
except Exception as error:
    print(type(error).__name__)
""", asks=r"huggingface\.co"),

    Row("modelscope", ["modelscope"], """
import os
from modelscope import snapshot_download
from modelscope.hub.utils.utils import get_cache_dir
assert not SET or str(get_cache_dir()).startswith(os.environ["MODELSCOPE_CACHE"])
try:
    snapshot_download("org/tiny", local_files_only=SET)
    raise SystemExit("it was there")
except Exception as error:
    print(type(error).__name__)
""", asks=r"modelscope"),

    Row("gradio", ["gradio"], """
import time, gradio
gradio.Interface(lambda text: text, "text", "text")
time.sleep(3)
""", asks=r"gradio"),

    Row("wandb", ["wandb"], """
import wandb
try:
    run = wandb.init(project="tiny")
    run.log({"loss": 1.0})
    run.finish()
except Exception as error:
    assert not SET, error
""", asks=r"wandb|coreweave", environment={"WANDB_API_KEY": "0123456789" * 4, "WANDB_INIT_TIMEOUT": "20"}),

    Row("mlflow-skinny", ["mlflow-skinny"], """
import time, mlflow
mlflow.set_tracking_uri("file:./runs")
with mlflow.start_run():
    mlflow.log_metric("loss", 1.0)
time.sleep(3)
""", asks=r"mlflow", environment={"MLFLOW_ALLOW_FILE_STORE": "true"}),

    Row("swanlab", ["swanlab"], """
import swanlab
try:
    swanlab.init(project="tiny", logdir="runs")
    swanlab.log({"loss": 1.0})
    swanlab.finish()
except Exception as error:
    assert not SET, error
""", asks=r"swanlab", environment={"SWANLAB_API_KEY": "0123456789abcdefghijk"}),

    Row("timm", ["timm"], """
import timm, torch
made = timm.create_model("resnet10t", pretrained=False)
torch.save(made.state_dict(), "weights.pth")
timm.create_model("resnet10t", pretrained=True, pretrained_cfg_overlay=dict(file="weights.pth"))
if not SET:
    timm.create_model("resnet10t", pretrained=True)
""", asks=r"huggingface\.co", torch=True),

    Row("torchvision", ["torchvision"], """
import pathlib, torch, torchvision
if SET:
    place = pathlib.Path(torch.hub.get_dir()) / "checkpoints"
    place.mkdir(parents=True)
    torch.save(torchvision.models.resnet18().state_dict(), place / "resnet18-f37072fd.pth")
torchvision.models.resnet18(weights="DEFAULT")
""", asks=r"pytorch\.org", torch=True, more={"TORCH_HOME": "${PREFIX}/data/torch"}),

    Row("torch.hub", [], """
import pathlib, torch
pathlib.Path("mine").mkdir()
pathlib.Path("mine/hubconf.py").write_text("def three():\\n    return 3\\n")
assert torch.hub.load("mine", "three", source="local") == 3
if not SET:
    torch.hub.load("org/mine", "three", trust_repo=True)
""", asks=r"github", torch=True),

    Row("lm-eval", ["lm-eval"], """
import pathlib, lm_eval
from lm_eval.tasks import TaskManager
pathlib.Path("tasks").mkdir()
pathlib.Path("rows.jsonl").write_text('{"q": "a", "o": ["b", "c"], "a": 0}\\n' * 4)
pathlib.Path("tasks/mine.yaml").write_text('''
task: mine
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{q}}"
doc_to_choice: o
doc_to_target: a
metric_list: [{metric: acc}]
''')
tasks = TaskManager(include_path="tasks", include_defaults=not SET)
print(lm_eval.simple_evaluate(model="dummy", tasks=["mine"], task_manager=tasks, bootstrap_iters=0)["results"])
if not SET:
    lm_eval.simple_evaluate(model="dummy", tasks=["arc_easy"], task_manager=tasks)
""", asks=r"huggingface\.co", torch=True),

    Row("torch", [], """
import torch
assert torch.compile(lambda x: x.sin() + 1)(torch.zeros(8)).tolist() == [1.0] * 8
""", writes=r"tmp/torchinductor_[^/]*/(?!precompiled_headers)", seconds=300, caches=r"torchinductor/", torch=True),

    Row("torch", ["ninja"], """
from torch.utils.cpp_extension import load_inline
mine = load_inline("mine", "int three() { return 3; }", functions="three")
assert mine.three() == 3
""", writes=r"home/\.cache/torch_extensions/", seconds=300,
        caches=r"torch_extensions/[^/]*-py3[^/]*/mine/", torch=True),

    Row("matplotlib", ["matplotlib"], """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot
matplotlib.pyplot.plot([1, 2])
matplotlib.pyplot.savefig("a.png")
""", writes=r"home/\.cache/matplotlib/fontlist", caches=r"matplotlib/fontlist"),

    Row("numba", ["numba"], """
import pathlib, sys
pathlib.Path("mine.py").write_text("import numba\\n@numba.njit(cache=True)\\ndef three(a):\\n    return a + 3\\n")
sys.path.insert(0, ".")
import mine
assert mine.three(0) == 3
""", writes=r"job/__pycache__/mine.*\.nbi", caches=r"numba/.*\.nbi"),

    Row("tilelang", ["tilelang"], """
import os, tilelang
place = str(getattr(tilelang.env, "env", tilelang.env).TILELANG_CACHE_DIR)
print(place)
if SET:
    assert place.startswith(os.environ["TILELANG_CACHE_DIR"]), place
""", torch=True),

    Row("triton", [], """
import os, triton.knobs
place = triton.knobs.cache.dir
assert place.startswith(os.environ["TRITON_CACHE_DIR"] if SET else os.path.expanduser("~/.triton")), place
""", torch=True),
]
