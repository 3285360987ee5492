import { describe, expect, it } from '@jest/globals'
import { analyze } from '../../packages/analyzer/src/analyze'
import { parser, project } from './corpus'

describe('the folder of checkpoints', () => {
  const saving = (path: string, more = ''): string => `
import argparse, os, torch
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="runs/a")
parser.add_argument("--best", default=None)
parser.add_argument("--tag", default=None)
args = parser.parse_args()
run = os.environ["RUN"]
folder = Path(args.out)
${more}
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(9):
    net(torch.randn(4, 2)).sum().backward()
    opt.step()
    path = None
    if epoch > 0:
        path = ${path}
        torch.save({"net": net.state_dict(), "epoch": epoch}, path)
`

  it.each([
    ['os.path.join(args.out, f"{epoch:03d}.pt")', 'runs/a'],
    ['f"{folder}/last.pt"', 'runs/a'],
    ['folder / ("at-%s.pt" % epoch)', 'runs/a'],
    ['"%s/at_%d.pt" % (args.out, epoch)', 'runs/a'],
    ['"{}/at_{:08d}".format(args.out, epoch)', 'runs/a'],
    ['args.out + "/" + str(epoch) + ".pt"', 'runs/a'],
    ['"./kept/" + run + "/last.pt"', 'kept'],
    ['os.path.join(args.out, run, "last.pt")', 'runs/a'],
    ['os.path.join("base" + os.sep, "last.pt")', 'base'],
    // What only the run shows is no folder, nor is a name that stands for it.
    ['f"{run}/last.pt"', null],
    ['str(epoch) + "/last.pt"', null],
    ['"last.pt"', null],
    ['os.path.join("/scratch", "last.pt")', null],
    ['"~/kept/last.pt"', null],
    ['"../kept/last.pt"', null],
    ['"s3://bucket/kept/last.pt"', null],
  ])('of %s is %s', async (path, directory) => {
    const files = project({ 'train.py': saving(path) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.checkpointDirectory.value).toBe(directory)
  })

  it.each([
    ['another working directory', 'os.chdir("/scratch")'],
    ['another place with the same command', 'if run:\n    args.out = "runs/b"'],
  ])('is not known with %s', async (_, more) => {
    const files = project({ 'train.py': saving('os.path.join(args.out, "last.pt")', more) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.checkpointDirectory.value).toBeNull()
  })

  const FIT = (arguments_: string): string => `
import torch
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from mine import callbacks
L.Trainer(max_epochs=3${arguments_}).fit(L.LightningModule(), None)
`
  it.each([
    ['', 'lightning_logs'],
    [', default_root_dir="work"', 'work'],
    [', logger=CSVLogger("tables")', 'tables'],
    [', logger=False', 'checkpoints'],
    [', logger=WandbLogger(), callbacks=[ModelCheckpoint("kept")]', 'kept'],
    [', logger=WandbLogger()', null],
    [', callbacks=callbacks', null],
    [', **callbacks', null],
  ])('of a Trainer of Lightning with "%s" is %s', async (arguments_, directory) => {
    const files = project({ 'train.py': FIT(arguments_) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.checkpointDirectory.value).toBe(directory)
  })
})

describe('the option that resumes', () => {
  const resuming = (options: string, loading: string, saved = 'f"kept/{epoch}.pt"'): string => `
import argparse, os, torch
parser = argparse.ArgumentParser()
${options}
args = parser.parse_args()
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = 0
def load(path):
    global first
    saved = torch.load(path)
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    first = saved["epoch"] + 1
${loading}
for epoch in range(first, 9):
    net(torch.randn(4, 2)).sum().backward()
    opt.step()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, ${saved})
`
  const PATH = 'parser.add_argument("--from", dest="start", default=None)'
  const FLAG = 'parser.add_argument("--again", action="store_true")'
  const SAVED = '"$CRUCIBLE_RESUME_FROM"'

  it.each([
    ['its path', PATH, 'if args.start:\n    load(args.start)', `--from ${SAVED}`],
    ['its flag', FLAG, 'if args.again:\n    load("kept/last.pt")', '--again'],
    [
      'its value',
      'parser.add_argument("--init", default="new", choices=["new", "old"])',
      'if args.init == "old":\n    load("kept/last.pt")',
      '--init=old',
    ],
    [
      'the option with an optional value',
      'parser.add_argument("--again", nargs="?", const=True, default=False)',
      'if args.again:\n    load("kept/last.pt")',
      '--again',
    ],
    [
      'the inner of two conditions',
      `${FLAG}\nparser.add_argument("--seed", type=int, default=None)`,
      'if args.seed is None:\n    if args.again:\n        load("kept/last.pt")',
      '--again',
    ],
    // One option alone does not resume, or the program needs none, or its value is not a path.
    ['two at once', `${PATH}\n${FLAG}`, 'if args.again and args.start:\n    load(args.start)', null],
    [
      'a number',
      'parser.add_argument("--at", type=int, default=0)',
      'if args.at:\n    load(f"kept/{args.at}.pt")',
      null,
    ],
    ['none', '', 'if os.path.exists("kept/last.pt"):\n    load("kept/last.pt")', null],
    [
      'none, because it finds the newest',
      PATH,
      'names = sorted(os.listdir("kept"))\npath = args.start or os.path.join("kept", names[-1])\nif names:\n    load(path)',
      null,
    ],
  ])('is %s', async (_, options, loading, words) => {
    const files = project({ 'train.py': resuming(options, loading) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.canResume.value).toBe('yes')
    expect(findings.resumeOption.value).toBe(words)
  })

  it.each([
    [
      'one of initial weights, because the program finds its checkpoint itself',
      PATH,
      'if args.start:\n    net.load_state_dict(torch.load(args.start))\nif os.path.exists("kept/last.pt"):\n    load("kept/last.pt")',
      undefined,
    ],
    [
      'one that also changes where the program saves',
      'parser.add_argument("--dir", default=None)',
      'if args.dir is not None and os.path.exists(args.dir):\n    load(os.path.join(args.dir, "last.pt"))',
      'os.path.join(args.dir, "last.pt")',
    ],
  ])('is never %s', async (_, options, loading, saved) => {
    const files = project({ 'train.py': resuming(options, loading, saved) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.canResume.value).toBe('yes')
    expect(findings.resumeOption.value).toBeNull()
  })

  it('is still needed if the command gives initial weights', async () => {
    const options = `${PATH}\n${FLAG}`
    const loading =
      'if args.start:\n    net.load_state_dict(torch.load(args.start)["net"])\nif args.again:\n    load("kept/last.pt")'
    const files = project({ 'train.py': resuming(options, loading) })
    const { findings } = analyze(await parser(), { files, command: 'python train.py --from weights.pt' })
    expect(findings.canResume.how).toMatchObject({ option: '--again', isGiven: false })
    expect(findings.resumeOption.value).toBe('--again')
  })

  it('is not sought in a configuration that was not found', async () => {
    const text = `
import hydra, torch
@hydra.main(version_base=None, config_path=".", config_name="run")
def main(cfg):
    net = torch.nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    first = 0
    if cfg.again:
        saved = torch.load("kept/last.pt")
        net.load_state_dict(saved["net"])
        opt.load_state_dict(saved["opt"])
        first = saved["epoch"] + 1
    for epoch in range(first, 9):
        net(torch.randn(4, 2)).sum().backward()
        opt.step()
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, "kept/last.pt")
main()
`
    const files = project({ 'train.py': text })
    const { findings } = analyze(await parser(), { files, command: 'python train.py' })
    expect(findings.canResume.confidence).toBeLessThan(0.9)
    expect(findings.resumeOption.value).toBeNull()
  })

  it.each([
    ['python train.py "$@"', `--from ${SAVED}`],
    ['python train.py', null],
  ])('reaches the program through a shell script with %s', async (line, words) => {
    const text = resuming(PATH, 'if args.start:\n    load(args.start)')
    const files = project({ 'train.py': text, 'run.sh': `#!/bin/sh\n${line}\n` })
    const { findings } = analyze(await parser(), { files, command: 'bash run.sh' })
    expect(findings.resumeOption.value).toBe(words)
  })
})
