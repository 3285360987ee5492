/** Mistakes at the command line and in files: the answer names the mistake and the remedy, and nothing is started. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { runCli } from '../../cli/run'
import { World } from './outside'

let world: World
const files: Readonly<Record<string, string>> = {
  'train.py': 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--lr")\n',
  'other/one.py': 'print(1)\n',
  'other/two.py': 'print(2)\n',
  'tool.py': 'import sys\nDRY = "--dry-run" in sys.argv\n',
  'nb.ipynb': '{"cells": []}',
  'job.yaml': 'name: base\nrun: python3 train.py\n',
  'flags.yaml': 'run: x\nmax_interruptions: 3\ncheckpoint_dir: out\n',
  'twice.yaml': 'name: a\nrun: x\nname: b\n',
  'typo.yaml': 'run: python3 trian.py\n',
  'list.yaml': 'run:\n  - pip install x\n  - python3 train.py\n',
  'models.yaml': 'run: x\nresources: { accelerators: "RTX 4090, A100" }\n',
  'indent.yaml': 'name: a\nresources:\n  memory: 1GB\n   cpus: 1\n',
  'secret.yaml': 'run: x\nsecrets: { HF_TOKEN: hf_abc }\n',
  'args.yaml': 'script: train.py\nargs: --lr 3\n',
  'calendar.yaml': 'run: x\nschedule: "0 6 * * *"\n',
  'packages.yaml': 'run: python3 train.py\nsetup: pip install -r requirements.txt\n',
  'retrain.yaml': 'name: r\nevery: 3 months\njob: { run: x }\n',
  'zone.yaml': 'name: r\nzone: CET/Berlin\njob: { run: x }\n',
}

beforeEach(() => {
  world = new World()
  mkdirSync(join(world.home, 'other'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(world.home, name), text)
  jest.spyOn(process, 'cwd').mockReturnValue(world.home)
})
afterEach(() => {
  jest.restoreAllMocks()
  world.remove()
})

/** Words of a command; a name of a file is below the world's folder. */
const wordsOf = (line: string): string[] =>
  line
    .split(' ')
    .map((word) =>
      Object.hasOwn(files, word) || /^(?:trian\.py|other|nodir)$/.test(word) ? join(world.home, word) : word,
    )

describe('a mistake is answered with what to write instead:', () => {
  it.each<[string, number, RegExp]>([
    ['submit trian.py', 2, /There is no file .*trian\.py here\. Did you mean .*\/train\.py\?/],
    ['submit https://github.com/karpathy/nanoGPT', 2, /is an address.* Clone or download it first/],
    ['analyze /dev/null', 2, /\/dev\/null is not a file that can be read/],
    ['submit other', 2, /is a folder: name the job file or script in it, such as .*one\.py/],
    ['submit nb.ipynb', 2, /nbconvert --to script/],
    ['init other', 2, /Nothing shows which program .* trains\.\nName it, such as .*one\.py, .*two\.py/],
    ['submit job.yaml typo.yaml', 2, /Only a script takes arguments.*submit each job with its own command/s],
    ['submit typo.yaml', 2, /^error: The command runs trian\.py.* Did you mean train\.py\?\n$/],
    ['submit train.py --workdir nodir', 2, /^error: There is no folder /],
    ['submit packages.yaml', 2, /^error: pip installs the packages of requirements\.txt, which is not among/],
    ['submit train.py -- --dry-run', 2, /--dry-run after -- is an argument of .*\nWrite --dry-run before --/],
    ['submit train.py -- --budget=5', 2, /--budget after -- is an argument/],
    [
      'submit train.py --lr 3 --follow --budget 5 --seed=1',
      2,
      /submit \S+train\.py --follow --budget 5 -- --lr 3 --seed=1`/,
    ],
    ['submit job.yaml --id Wrong', 2, /^error: "Wrong" is not a valid job id/],
    [
      'submit job.yaml --region us_east_1',
      2,
      /--region "us_east_1" is not the name of a Region.* --region us-east-1/,
    ],
    ['submit list.yaml', 2, /run must be a text, but is a list\. Write its entries as lines below run: \|/],
    ['submit models.yaml', 2, /several accelerators in one text\. Write a list: \[ RTX 4090, A100 \]/],
    ['submit indent.yaml', 2, /^error: \S+:3:11: .*the next line is indented more\. .*alike\.\n$/],
    ['submit secret.yaml', 2, /Write the names only.*read from the environment/],
    [
      'submit args.yaml',
      2,
      /args is not a field\. Write them after the program, such as script: train\.py --lr/,
    ],
    ['submit calendar.yaml', 2, /`crucible schedule create retrain\.yaml`/],
    ['schedule create retrain.yaml', 2, /but is "3 months"\. Write quarter\./],
    ['schedule create zone.yaml', 2, /but is "CET\/Berlin"/],
    ['schedule start x', 2, /unknown action "start".*Did you mean trigger\?/s],
    ['reservations cancel x', 2, /unknown action "cancel".*Did you mean release\?/s],
    ['submit twice.yaml', 2, /twice\.yaml:3:1: name appears twice\. Remove one of the two\./],
    ['submit flags.yaml', 2, /max_interruptions is not a field\. Did you mean retries\.interruptions\?/],
    ['submit flags.yaml', 2, /checkpoint_dir is not a field\. Did you mean checkpoint\.directory\?/],
    ['logs x -n 5', 2, /unknown option '-n'\.\nDid you mean --tail\? See/],
    ['list -n 5', 2, /Did you mean --limit\?/],
    ['list -o json', 2, /Did you mean --json\?/],
    ['submit job.yaml --spot', 2, /Did you mean --interruptible\?/],
    ['submit job.yaml --time 4h', 2, /Did you mean --duration\?/],
    ['submit job.yaml -e A=1', 2, /Did you mean --env\?/],
    ['list running', 2, /unexpected argument "running": list takes none\.\nDid you mean --state running\?/],
    ['migrate x aws', 2, /migrate takes <job> only\.\nDid you mean --to aws\?/],
    ['why x 2', 2, /Did you mean --decision 2\?/],
    ['reservations reserve --type p5.48xlarge', 2, /needs a duration\.\nWrite, for example, --for 4d\./],
    ['schedule pause x --reason y', 2, /unknown option '--reason'\.\nSee /],
    ['reserve --type p5', 2, /Unknown command: reserve\.\n.*`crucible reservations reserve`/],
    [
      'reservations reserve --type p5 --for 4d --from 2027-01-01T00:00Z --end-by 2026-12-31T00:00Z',
      2,
      /--end-by .* leaves too little time after --from\.\nWrite 2027-01-04T23:00:00Z or later/,
    ],
    ['reservations reserve --type p5 --for 4d --from 2d --start-by 1d', 2, /--start-by .* is before --from/],
    ['list base', 2, /unexpected argument "base": list takes none\./],
    ['show a b', 2, /unexpected argument "b": show takes <job> only\./],
    ['show', 2, /missing required argument 'job': id, beginning of an id, or name\./],
    ['setup', 2, /missing required argument 'provider': aws, lambda, modal\./],
    ['list --json=yes', 2, /^error: --json takes no value\./],
    ['job list', 2, /`crucible list`/],
  ])('crucible %s', async (line, exitCode, words) => {
    const answer = await world.run(...wordsOf(line))
    expect(answer).toEqual({ exitCode, stdout: '', stderr: expect.stringMatching(words) })
  })
})

it('a script that mentions an option gets it', async () => {
  const { stderr } = await world.run(...wordsOf('submit tool.py -- --dry-run'))
  expect(stderr).not.toContain('after --')
})

it('a person who answers a question with no gets no success', async () => {
  const { outside, stdout } = world.outside()
  stdout.isTTY = true
  outside.ask = () => Promise.resolve('n')
  const exitCode = await runCli(['submit', join(world.home, 'job.yaml'), '--no-analyze'], outside)
  expect({ exitCode, text: stdout.text }).toEqual({ exitCode: 1, text: 'Nothing was submitted.\n' })
})
