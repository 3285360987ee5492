import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import {
  calledFiles,
  hiddenFailureWarnings,
  scriptOf,
  scriptProblems,
  startedScripts,
} from '../../../client/job/scripts'
import { readTree } from '../../../storage/bundle-tree'

describe('the script of a command', () => {
  it.each([
    ['python3 train.py', 'train.py'],
    ['python -u ./train.py --lr 3', 'train.py'],
    ['PYTHONUNBUFFERED=1 python3.11 src/train.py', 'src/train.py'],
    ['./run.sh', 'run.sh'],
    ['bash run.sh && python3 other.py', 'run.sh'],
    ['torchrun --nproc_per_node=8 train.py', 'train.py'],
    ['accelerate launch --mixed_precision bf16 train.py', 'train.py'],
    ['# first\npip install -r requirements.txt\npython3 train.py', 'train.py'],
    ['exec python3 train.py', 'train.py'],
    ['python3 -m package.train', undefined],
    ['python3 -c "print(1)"', undefined],
    ['python3 $SCRIPT', undefined],
    ['python3 "my train.py"', undefined],
    ['python3 /opt/train.py', undefined],
    ['cd src && python3 train.py', undefined],
    ['git clone x; python3 train.py', undefined],
    ['nvidia-smi', undefined],
    ['make train', undefined],
  ])('of %j is %s', (run, script) => {
    expect(scriptOf(run)).toBe(script)
  })
})

describe('the files that commands start', () => {
  it.each([
    ['./run.sh --x', ['run.sh*']],
    ['sh run.sh', ['run.sh']],
    ['/bin/bash -e scripts/run.sh a b', ['scripts/run.sh']],
    ['source env.sh && exec ./bin/train | tee log', ['env.sh', 'bin/train*']],
    ['if ./check.sh; then A=1 ./run.sh; fi', ['check.sh*', 'run.sh*']],
    ['cd src\n./run.sh\ncd ..\n. ./end.sh', ['src/run.sh*', 'end.sh']],
    ['cd $WHERE && ./run.sh', []],
    ['./a.sh # ./b.sh', ['a.sh*']],
    ['cat > x <<END\n./no.sh\nEND', []],
    ['sh -c "./no.sh"', []],
    ['python3 train.py && ../other/run.sh', []],
  ])('of %j are %j', (commands, paths) => {
    expect(calledFiles(commands).map(({ path, isProgram }) => `${path}${isProgram ? '*' : ''}`)).toEqual(
      paths,
    )
  })
})

describe('a file that a job starts', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'crucible-scripts-'))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  const CR = /carriage return.*sed -i/
  const BIT = /not executable: `chmod \+x/

  it.each<[string, Record<string, string>, { run: string; setup?: string }, RegExp[]]>([
    ['without the executable bit', { 'run.sh': '#!/bin/sh\n' }, { run: './run.sh' }, [BIT]],
    ['with it', { 'run.sh*': '#!/bin/sh\n' }, { run: './run.sh' }, []],
    ['that setup makes executable', { 'run.sh': '' }, { run: './run.sh', setup: 'chmod +x run.sh' }, []],
    [
      'whose interpreter ends with a carriage return',
      { 'a.py*': '#!/usr/bin/python3\r\n' },
      { run: './a.py' },
      [CR],
    ],
    ['that sh reads, with the lines of Windows', { 'run.sh': 'cd x\r\nls\r\n' }, { run: 'sh run.sh' }, [CR]],
    ['that setup converts', { 'run.sh': 'ls\r\n' }, { run: 'sh run.sh', setup: 'dos2unix run.sh' }, []],
    ['with one carriage return', { 'run.sh': 'a\r\nb\nc\n' }, { run: 'sh run.sh' }, []],
    [
      'that another one starts',
      { 'run.sh*': '#!/bin/sh\n./step.sh\n', 'step.sh': '' },
      { run: './run.sh' },
      [BIT],
    ],
    ['that Python reads', { 'a.py': 'print(1)\r\n' }, { run: 'python3 a.py' }, []],
    ['in setup', { 'prepare.sh': 'ls\r\n' }, { run: 'true', setup: 'bash prepare.sh' }, [CR]],
  ])('%s', async (_what, files, spec, expected) => {
    for (const [name, text] of Object.entries(files)) {
      const path = join(root, name.replace('*', ''))
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
      if (name.endsWith('*')) chmodSync(path, 0o755)
    }
    const { entries } = await readTree(root, [], 100)
    const problems = scriptProblems(spec, await startedScripts(spec, { root, entries }))
    expect(problems).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
  })
})

describe('a script that continues after a failure', () => {
  let root: string
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'crucible-scripts-'))
    writeFileSync(join(root, 'run.sh'), 'python3 train.py\necho done\n')
    writeFileSync(join(root, 'last.sh'), 'cd code\npython3 train.py\n')
    writeFileSync(join(root, 'strict.sh'), '#!/bin/bash -e\npython3 train.py\necho done\n', { mode: 0o755 })
    writeFileSync(join(root, 'outer.sh'), 'set -e\nbash run.sh\n')
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it.each([
    ['bash run.sh', 'In run.sh: the commands go on after a failure: begin with `set -e`'],
    ['bash outer.sh', 'In run.sh: '],
    ['python3 train.py || true', 'In run: `|| true`'],
    ['bash last.sh', ''],
    ['bash -e run.sh', ''],
    ['bash -euo pipefail run.sh', ''],
    ['source run.sh', ''],
    ['./strict.sh', ''],
  ])('is named before the job %s runs', async (run, words) => {
    const { entries } = await readTree(root, [], 100)
    const warnings = hiddenFailureWarnings({ run }, await startedScripts({ run }, { root, entries }))
    expect(warnings).toEqual(words === '' ? [] : [expect.stringContaining(words)])
  })
})
