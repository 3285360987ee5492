import { beforeAll, describe, expect, it } from '@jest/globals'
import { analyze, type Analysis, type PythonParser } from '../../packages/analyzer/src/analyze'
import { readCommands } from '../../packages/analyzer/src/launch'
import { notebookCode } from '../../packages/analyzer/src/notebook'
import { parser, project } from './corpus'

const LOOP = `
import torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(EPOCHS):
    for x in torch.utils.data.DataLoader(data, batch_size=4):
        net(x).sum().backward()
        opt.step()
`

describe('a command', () => {
  const files = project({
    'train.py': '',
    'pkg/train.py': '',
    'pkg/__main__.py': '',
    'run.sh': 'N=4\nGPUS=2 # two\ntorchrun --nproc_per_node=$GPUS train.py \\\n  --n "$N" "$@"\n',
  })

  it.each([
    ['python train.py --lr 0.1', 'train.py', ['--lr', '0.1']],
    ['CUDA_VISIBLE_DEVICES=0 python3 -u -W ignore train.py', 'train.py', []],
    ['python -m pkg.train --x', 'pkg/train.py', ['--x']],
    ['python -m pkg', 'pkg/__main__.py', []],
    ['torchrun --standalone --nproc_per_node 4 train.py a', 'train.py', ['a']],
    ['accelerate launch --mixed_precision bf16 -m pkg.train b', 'pkg/train.py', ['b']],
    ['accelerate launch --module pkg.train b', 'pkg/train.py', ['b']],
    ['deepspeed --num_gpus=2 train.py --deepspeed ds.json', 'train.py', ['--deepspeed', 'ds.json']],
    ['pip install -r requirements.txt && python train.py', 'train.py', []],
    ['srun --gpus 2 python train.py', 'train.py', []],
    ['bash -lc "source env && python train.py --x"', 'train.py', ['--x']],
    ['bash run.sh --seed 3', 'train.py', ['--n', '4', '--seed', '3']],
  ])('is understood: %s', (command, entry, args) => {
    expect(readCommands(command, files)[0]).toMatchObject({ entry, args })
  })

  it.each([
    ['cd sub && python3 train.py --x', 'sub/train.py', ['--x'], 'sub'],
    ['cd sub; python train.py', 'sub/train.py', [], 'sub'],
    ['cd ./sub/\npython train.py > log.txt 2>&1', 'sub/train.py', [], 'sub'],
    ['cd sub && cd .. && python train.py', 'train.py', [], ''],
    ['cd /app && python train.py', 'train.py', [], ''],
    ['pushd sub && python train.py; popd', 'sub/train.py', [], 'sub'],
    ['pushd sub; ls; popd; python train.py | tee log', 'train.py', [], ''],
    ['(cd sub; python train.py --x)', 'sub/train.py', ['--x'], 'sub'],
    ['( cd sub && python prepare.py ) && python train.py', 'train.py', [], ''],
    ['cd sub && python -m pkg.train', 'sub/pkg/train.py', [], 'sub'],
    ['cd sub && bash ../go.sh --x', 'sub/train.py', ['--x'], 'sub'],
    ['bash sub/here.sh', 'sub/train.py', ['--here'], 'sub'],
    ['make -C sub fit LR=0.1', 'sub/train.py', ['--lr', '0.1', '--n', '3'], 'sub'],
    ['cd sub && make', 'sub/train.py', ['--all'], 'sub'],
    ['env X=1 python train.py', 'train.py', [], ''],
    ['uv run train.py --x', 'train.py', ['--x'], ''],
    ['uv run --with torch python -u train.py --x', 'train.py', ['--x'], ''],
    ['poetry run python train.py', 'train.py', [], ''],
    ['conda run -n env --no-capture-output python train.py', 'train.py', [], ''],
    ['uv run accelerate launch --num_processes 2 train.py', 'train.py', [], ''],
    ['poetry run torchrun --standalone -m pkg.train', 'pkg/train.py', [], ''],
    ['cat > note.md <<EOF\npython other.py\nEOF\npython train.py', 'train.py', [], ''],
  ])('is followed to its program and folder: %s', (command, entry, args, folder) => {
    const inFolders = project({
      'train.py': '',
      'other.py': '',
      'pkg/train.py': '',
      'sub/train.py': '',
      'sub/pkg/train.py': '',
      'go.sh': 'python train.py "$@"\n',
      'sub/here.sh': 'cd "$(dirname "$0")"\npython train.py --here\n',
      'sub/Makefile':
        'N := 3\nall: data\n\t@python train.py --all\n\nfit:\n\tpython train.py --lr $(LR) \\\n\t  --n ${N}\n',
    })
    expect(readCommands(command, inFolders)[0]).toMatchObject({ entry, args, folder })
  })

  it('that changes the folder saves and reads its settings there', async () => {
    const text = `import sys, os, yaml
sys.path.append(os.path.join(os.path.dirname(__file__), '..'))
from shared.net import net
config = yaml.safe_load(open('config.yaml'))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(config['epochs']):
    opt.step()
    torch.save(net.state_dict(), f"../out/{epoch}.pt")
    torch.save(net.state_dict(), os.path.join(os.path.dirname(__file__), '../out/last.pt'))
`
    const files = project({
      'sub/train.py': `import torch\n${text}`,
      'sub/config.yaml': 'epochs: 7',
      'shared/net.py': 'import torch\nnet = torch.nn.Linear(2, 2)\n',
    })
    const { findings, obstacles } = analyze(await parser(), { files, command: 'cd sub && python train.py' })
    expect(obstacles).toEqual([])
    expect([findings.epochs.value, findings.checkpointDirectory.value]).toEqual([7, 'out'])
  })

  it('tells how many processes run, and the line of the script that says so', () => {
    expect(readCommands('bash run.sh', files)[0]).toMatchObject({
      processes: 2,
      launcher: 'torchrun',
      from: { file: 'run.sh', line: 3 },
    })
  })

  it.each([
    [
      'an array',
      'ARGS=(--lr 0.1\n  --name "a b" # c\n)\nARGS+=(--x)\npython train.py "${ARGS[@]}"',
      ['--lr', '0.1', '--name', 'a b', '--x'],
    ],
    [
      'the words of a variable',
      'ARGS=\'--lr 0.1\'\nNONE=\npython train.py $ARGS $NONE "$ARGS"',
      ['--lr', '0.1', '--lr 0.1'],
    ],
    ['a default', ': "${N:=4}"\nM=${M:-$1}\npython train.py $N ${K-5}', ['4', '5']],
    ['text between single quotes', "N=1\npython train.py '$N' \\$N", ['$N', '$N']],
    ['what it does not know', 'python train.py $UNKNOWN', ['$UNKNOWN']],
  ])('is expanded by the rules of the shell: %s', (_, script, args) => {
    const shell = project({ 'train.py': '', 'go.sh': script })
    expect(readCommands('bash go.sh', shell)[0]?.args).toEqual(args)
  })

  it('may start no Python program', () => {
    expect(readCommands('echo done', files)[0]).toBeUndefined()
    expect(readCommands("python3 - <<'P'\nimport os\nP", files)[0]).toBeUndefined()
  })
})

describe('a notebook', () => {
  const cell = (source: unknown, type: unknown = 'code'): unknown => ({ cell_type: type, source })
  const notebook = (content: object): string => JSON.stringify({ nbformat: 4, ...content }, null, 1)

  it('keeps the lines of its file, without its own commands', () => {
    const text = notebook({ cells: [cell(['import torch\n', '%matplotlib inline\n', 'x = 1'])] })
    const read = notebookCode(text)
    if (!('code' in read)) throw new Error(read.problem)
    const lines = read.code.split('\n')
    expect(lines.filter((line) => line !== '')).toEqual(['import torch', 'x = 1'])
    expect(text.split('\n')[lines.indexOf('x = 1')]).toContain('x = 1')
  })

  it.each([
    ['is not JSON', 'x = 1', /not JSON/],
    ['has no cells', notebook({}), /no cells/],
    [
      'has the old format',
      notebook({ nbformat: 3, worksheets: [] }),
      /notebook format 3: convert it with jupyter/,
    ],
    [
      'is for another language',
      notebook({ metadata: { kernelspec: { name: 'ir', language: 'R' } }, cells: [cell('x <- 1')] }),
      /for R, not for Python/,
    ],
    ['has only text', notebook({ cells: [cell('# Title', 'markdown'), cell('')] }), /without code/],
    ['has no list of cells', notebook({ cells: {} }), /cells has a wrong type/],
    ['has a cell of nothing', notebook({ cells: [null] }), /cells\.0 has a wrong type/],
    ['has numbers as code', notebook({ cells: [cell([1])] }), /cells\.0\.source/],
  ])('is refused with the reason if it %s', (_, text, problem) => {
    expect(notebookCode(text)).toEqual({ problem: expect.stringMatching(problem) })
  })

  it('is measured by its code, not by its outputs', async () => {
    const outputs = [{ output_type: 'display_data', data: { 'image/png': 'A'.repeat(5_000_000) } }]
    const code = `data = None\nEPOCHS = 4\n${LOOP}`
    const text = notebook({ cells: [{ ...(cell(code) as object), outputs }] })
    const analysis = analyze(await parser(), {
      files: project({ 'a.ipynb': text }),
      command: 'jupyter nbconvert --execute a.ipynb',
    })
    expect(analysis.findings.epochs.value).toBe(4)
  })
})

describe('a project', () => {
  let python: PythonParser
  const read = (texts: Record<string, string>, command = 'python train.py'): Analysis =>
    analyze(python, { files: project(texts), command })

  beforeAll(async () => {
    python = await parser()
  })

  it('is followed through cycles of imports, packages and relative imports', () => {
    const analysis = read({
      'train.py': `from lib import settings\nEPOCHS = settings.EPOCHS\ndata = None\n${LOOP}`,
      'lib/__init__.py': 'from .settings import EPOCHS',
      'lib/settings.py': 'from . import other\nEPOCHS = other.HALF * 2',
      'lib/other.py': 'from . import settings\nHALF = 6',
    })
    expect(analysis.findings.epochs).toMatchObject({ value: 12, evidence: [{ file: 'train.py' }] })
    expect(analysis.files).toEqual(['train.py', 'lib/__init__.py', 'lib/settings.py', 'lib/other.py'])
  })

  it('is followed through functions that call each other without end', () => {
    const analysis = read({
      'train.py': `def a(n): return b(n)\ndef b(n): return a(n)\nEPOCHS = a(3)\ndata = None\n${LOOP}`,
    })
    expect(analysis.kind).toBe('training')
    expect(analysis.findings.epochs.value).toBeNull()
  })

  it('says which module could not be followed', () => {
    const analysis = read({
      'train.py': `import importlib, sys\nm = importlib.import_module(sys.argv[1])\nEPOCHS = 1\ndata = None\n${LOOP}`,
    })
    expect(analysis.obstacles).toEqual([
      { file: 'train.py', line: 2, message: 'imports a module whose name is known only at run time' },
    ])
  })

  it('is less sure of everything after a syntax error', () => {
    const analysis = read({ 'train.py': `EPOCHS = 2\ndata = None\nx = = 3\n${LOOP}` })
    expect(analysis.obstacles).toMatchObject([{ line: 3 }])
    for (const { confidence } of Object.values(analysis.findings)) expect(confidence).toBeLessThan(0.9)
  })

  it('is not tried on a text whose errors take the parser ever longer', () => {
    const analysis = read({ 'train.py': `elif a@a\n${'***@a\n'.repeat(4_000)}` })
    const message = 'was not read: it has more syntax errors than can be passed over'
    expect(analysis).toMatchObject({
      kind: 'unreadable',
      obstacles: [{ file: 'train.py', line: 1, message }],
    })
    expect(read({ 'train.py': `EPOCHS = 2\ndata = None\n${LOOP}` }).findings.epochs.value).toBe(2)
  })

  it('reads settings in TOML, and says if it cannot', () => {
    const train = `import sys, tomllib\nwith open(sys.argv[1], "rb") as f:\n    c = tomllib.load(f)\nEPOCHS = c["run"]["epochs"]\ndata = None\n${LOOP}`
    const of = (toml: string): Analysis =>
      read({ 'train.py': train, 'a.toml': toml }, 'python train.py a.toml')
    expect(of('[run]\nepochs = 0x1_0 # sixteen').findings.epochs.value).toBe(16)
    expect(of('[run').obstacles).toEqual([{ file: 'a.toml', line: 1, message: 'cannot be read as TOML' }])
  })

  it('without a program is unreadable', () => {
    expect(read({}, 'python missing.py')).toMatchObject({ kind: 'unreadable', entry: 'missing.py' })
    expect(analyze(python, { files: project({ 'a.txt': '' }) })).toMatchObject({
      kind: 'unreadable',
      entry: null,
    })
  })

  it('of 50 files or 5,000 lines is read within its two seconds', () => {
    const helper = (at: number): string =>
      Array.from(
        { length: 100 },
        (_, line) => `def f${line}(x, y=${line}):\n    return [x + y for x in range(${at})]`,
      ).join('\n')
    const names = Array.from({ length: 49 }, (_, at) => `part${at}`)
    const texts = Object.fromEntries(names.map((name, at) => [`${name}.py`, helper(at)]))
    const imports = names.map((name) => `from ${name} import *`).join('\n')
    texts['train.py'] = `${imports}\nEPOCHS = 3\ndata = None\n${LOOP}`
    const before = process.cpuUsage()
    const analysis = read(texts)
    const used = process.cpuUsage(before)
    expect(analysis.linesRead).toBeGreaterThan(5_000)
    expect(analysis.findings.epochs.value).toBe(3)
    expect((used.user + used.system) / 1_000).toBeLessThan(2_000)
  })
})

describe('a program that loads whole objects', () => {
  const JAX = (load: string, path: string): string => `
import argparse, pickle, jax
p = argparse.ArgumentParser()
p.add_argument("--data", default="data.pkl")
p.add_argument("--state", default="state.pkl")
args = p.parse_args()
params, momentum, first = init(), zeros(), 0
with open(${path}, "rb") as f:
    ${load}
for step in range(first, 100):
    grads = jax.grad(loss)(params, rows[step])
    momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree_util.tree_map(lambda p, m: p - m, params, momentum)
    pickle.dump((params, momentum, step), open(args.state, "wb"))
`
  const BOOST = (rounds: string): string => `
import os, xgboost as xgb
last = newest(os.listdir("boosters"))
booster = xgb.Booster(model_file=last)
n = ${rounds}
xgb.train({}, xgb.DMatrix("x"), num_boost_round=n, xgb_model=booster,
          callbacks=[xgb.callback.TrainingCheckPoint("boosters", interval=10)])
`
  const SHARDS = (restored: string): string => `
import torch, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict, set_model_state_dict
class App:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.step = model, optimizer, 0
    def state_dict(self):
        model, optim = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optim, "step": self.step}
    def load_state_dict(self, state):
        ${restored}
        self.step = state["step"]
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
app = App(model, optimizer)
dcp.load({"app": app}, checkpoint_id="shards")
while app.step < 100:
    model(x).sum().backward()
    optimizer.step()
    app.step += 1
    dcp.save({"app": app}, checkpoint_id="shards")
`

  it.each([
    ['the state that it saved', JAX('params, momentum, first = pickle.load(f)', 'args.state'), 'yes'],
    [
      'a state whose position it ignores',
      JAX('params, momentum, _ = pickle.load(f)', 'args.state'),
      'partial',
    ],
    ['parameters only', JAX('params = pickle.load(f)[0]', 'args.state'), 'partial'],
    ['its data', JAX('rows = pickle.load(f)', 'args.data'), 'no'],
    ['trees, and boosts for the rest of the rounds', BOOST('100 - booster.num_boosted_rounds()'), 'yes'],
    ['trees, and boosts for all rounds again', BOOST('100'), 'partial'],
    [
      'shards of model and optimizer',
      SHARDS(
        'set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])',
      ),
      'yes',
    ],
    ['shards of the model', SHARDS('set_model_state_dict(self.model, state["model"])'), 'partial'],
    ['shards that it does not use', SHARDS('pass'), 'no'],
  ])('is read for what it continues with: %s', async (_, text, canResume) => {
    const analysis = analyze(await parser(), {
      files: project({ 'train.py': text }),
      command: 'python train.py',
    })
    expect(analysis.findings.canResume.value).toBe(canResume)
  })
})

describe('LightningCLI', () => {
  const MAIN = `
import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
class Data(LightningDataModule):
    def __init__(self, batch_size: int = 64):
        super().__init__()
        self.save_hyperparameters()
    def train_dataloader(self):
        return torch.utils.data.DataLoader(data, batch_size=self.hparams.batch_size)
class Model(LightningModule):
    def training_step(self, batch, _):
        return self(batch)
LightningCLI(Model, Data)
`

  it.each([
    ['the class', 'python main.py fit', 64],
    ['the configuration', 'python main.py fit --config run.yaml', 128],
    ['the command', 'python main.py fit --config run.yaml --data.batch_size=32', 32],
  ])('gives a data module the arguments of %s', async (_, command, size) => {
    const files = project({ 'main.py': MAIN, 'run.yaml': 'data:\n  batch_size: 128\n' })
    expect(analyze(await parser(), { files, command }).findings.batchSize.value).toBe(size)
  })
})

describe('the GPUs of a Trainer of Lightning', () => {
  it.each([
    ['devices=2', 2],
    ['devices="2"', 2],
    ['devices="0,3"', 2],
    ['devices=[0, 1, 2]', 3],
  ])('are counted with %s', async (devices, count) => {
    const text = `import lightning.pytorch.trainer.trainer as t\nt.Trainer(accelerator="gpu", ${devices}).fit(None)\n`
    const { findings } = analyze(await parser(), {
      files: project({ 'train.py': text }),
      command: 'python train.py',
    })
    expect(findings.gpuUse.value).toBe('hard')
    expect(findings.gpuCount.value).toBe(count)
  })
})

describe('a class of code that is not in the project', () => {
  it.each([
    ['from mylib import Checkpointer\nsaver = Checkpointer("out")\n', 0.6],
    ['from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl\n', 0.95],
  ])('may save what no call in it saves: %j', async (head, confidence) => {
    const files = project({ 'train.py': `${head}EPOCHS = 2\ndata = None\n${LOOP}` })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.canResume).toMatchObject({ value: 'no', confidence })
  })
})

describe('a checkpoint of PyTorch', () => {
  const resuming = (entry: string, more = ''): string => `
import argparse, types, numpy as np, torch
class Settings:
    pass
args = argparse.ArgumentParser().parse_args()
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = 0
state = torch.load("last.pt"${more})
net.load_state_dict(state["net"])
opt.load_state_dict(state["opt"])
first = state["epoch"] + 1
for epoch in range(first, 9):
    for x in torch.utils.data.DataLoader(data, batch_size=4):
        net(x).sum().backward()
        opt.step()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch, "more": ${entry}}, "last.pt")
`

  it.each([
    ['np.random.get_state()', '', 'no'],
    ['np.mean([1.0])', '', 'no'],
    ['args', '', 'no'],
    ['types.SimpleNamespace(a=1)', '', 'no'],
    ['Settings()', '', 'no'],
    ['np.random.get_state()', ', weights_only=True', 'no'],
    ['np.random.get_state()', ', weights_only=False', 'yes'],
    ['vars(args)', '', 'yes'],
    ['torch.get_rng_state()', '', 'yes'],
  ])('with %s is loaded by a call%s: %s', async (entry, more, value) => {
    const files = project({ 'train.py': resuming(entry, more) })
    const { canResume } = analyze(await parser(), { files, command: 'python train.py' }).findings
    expect(canResume).toMatchObject({
      value,
      missing: value === 'yes' ? [] : [expect.stringMatching(/^torch\.load refuses .* since PyTorch 2\.6/)],
    })
  })
})

describe('a loop that may begin after a checkpoint', () => {
  it.each([
    ['range(start, 400)', 400],
    ['range(start + 1, 401)', 400],
    ['range(start + 1, 400)', 399],
    ['tqdm(range(start - 1, 400))', 400],
  ])('has the rounds of a run from the start: %s', async (rounds, steps) => {
    const text = `
import os, torch
from tqdm import tqdm
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
start = 0
if os.path.exists("last.pt"):
    start = torch.load("last.pt")["step"]
for step in ${rounds}:
    net(torch.randn(4, 2)).sum().backward()
    opt.step()
`
    const { findings } = analyze(await parser(), {
      files: project({ 'train.py': text }),
      command: 'python train.py',
    })
    expect(findings.steps.value).toBe(steps)
  })
})

describe('code behind the certain end of its block', () => {
  it.each([
    ['sys.exit(0)', 'none'],
    ['raise SystemExit', 'none'],
    ['print(1)', 'periodic'],
  ])('does not run: a save behind %s is %s', async (end, kind) => {
    const text = `
import sys, torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if True:
    ${end}
    for epoch in range(10):
        model(torch.rand(4, 2)).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "a.pt")
`
    const files = {
      list: () => ['train.py'],
      read: (path: string) => (path === 'train.py' ? text : undefined),
    }
    const { saveKind } = analyze(await parser(), { files, command: 'python train.py' }).findings
    expect(saveKind.value).toBe(kind)
  })
})
