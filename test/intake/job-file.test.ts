import { describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJobObject } from '../../intake/job-file'
import { checkJobSpec } from '../../intake/job-spec'
import { formatProblem } from '../../intake/problem'
import { NOW, parsed } from './reading'

const HOUR = 3_600_000

describe('a job file', () => {
  it('with nothing but a script is a job with every default', () => {
    expect(parsed('script: train.py\n')).toEqual({
      workdir: '.',
      spec: {
        name: 'job',
        run: 'python3 train.py',
        inputs: [],
        resources: {},
        isInterruptible: false,
        checkpoint: {},
        backends: [],
        optimize: 'cost',
        retries: { failures: 0, interruptions: 100 },
        env: {},
        secrets: [],
        outputs: [],
      },
    })
  })

  it('with every field says all of it', () => {
    const text = `
name: char-lm
run: |
  python3 train.py
  python3 evaluate.py
setup: pip install -r requirements.txt
workdir: ../project
image: "registry.example.com:5000/team/image:1.2@sha256:0123"
inputs:
  data/train.bin: https://example.com/train.bin
  ./vocab.txt: file:///srv/vocab.txt
resources:
  gpus: 2..4
  gpu_memory: 24GB..80GB
  accelerators: [a100-40gb, NVIDIA H100 80GB HBM3, RTX 7090]
  cpus: 8
  memory: 64GiB
  disk: ..2TiB
  disk_throughput: 1500
  disk_iops: 6000
  shm: 8GiB
duration: 1d12h
interruptible: true
isolation: dedicated
accept: billed-until-terminated
checkpoint:
  directory: ./runs/ckpt/
  every: 10m
  complete: trainer_state.json
  include: [checkpoint-*, latest]
  exclude: cache/
  quiet: 10s
  signal: SIGUSR1
  keep: 5
deadline: 2026-12-01T09:00:00+01:00
budget: $25.50
backends: [local, "ec2:spot", "ec2:on-demand"]
regions: [us-east-1, eu-west-1a]
reservation: res-ranker
max_price: $3.50
optimize: reliability
retries: { failures: 2, interruptions: 5 }
env: { GREETING: hello world }
secrets: [HF_TOKEN, WANDB_API_KEY]
outputs: [weights.bin, "figures/**/*.png"]
`
    expect(parsed(text)).toEqual({
      workdir: '../project',
      spec: {
        name: 'char-lm',
        run: 'python3 train.py\npython3 evaluate.py\n',
        setup: 'pip install -r requirements.txt',
        image: 'registry.example.com:5000/team/image:1.2@sha256:0123',
        inputs: [
          { source: 'https://example.com/train.bin', path: 'data/train.bin' },
          { source: 'file:///srv/vocab.txt', path: 'vocab.txt' },
        ],
        resources: {
          gpus: { min: 2, max: 4 },
          gpuMemoryGb: { min: 24, max: 80 },
          accelerators: ['A100', 'H100', 'RTX 7090'],
          cpus: { min: 8 },
          memoryGiB: { min: 64 },
          diskGiB: { max: 2048 },
          diskMibPerSecond: 1500,
          diskIops: 6000,
          shmGiB: 8,
        },
        durationMs: 36 * HOUR,
        isInterruptible: true,
        isolation: 'dedicated',
        accepts: ['billed-until-terminated'],
        checkpoint: {
          directory: 'runs/ckpt',
          everyMs: 600_000,
          complete: ['trainer_state.json'],
          include: ['checkpoint-*', 'latest'],
          exclude: ['cache'],
          quietMs: 10_000,
          signal: 'SIGUSR1',
          keep: 5,
        },
        deadlineAtMs: Date.UTC(2026, 11, 1, 8),
        budgetMicroUsd: 25_500_000,
        backends: [
          { backend: 'local' },
          { backend: 'ec2', capacityType: 'spot' },
          { backend: 'ec2', capacityType: 'on-demand' },
        ],
        regions: ['us-east-1', 'eu-west-1a'],
        reservation: 'res-ranker',
        priceMaxMicroUsdPerHour: 3_500_000,
        optimize: 'reliability',
        retries: { failures: 2, interruptions: 5 },
        env: { GREETING: 'hello world' },
        secrets: ['HF_TOKEN', 'WANDB_API_KEY'],
        outputs: ['weights.bin', 'figures/**/*.png'],
      },
    })
  })

  it('calls the soonest end by either of its names', () => {
    for (const what of ['time', 'speed'])
      expect(parsed(`script: train.py\noptimize: ${what}\n`).spec.optimize).toBe('time')
  })

  it('gives a spec that the first activity takes as it stands', () => {
    const page = readFileSync(join(__dirname, '..', '..', 'docs', 'reference', 'job-file.md'), 'utf8')
    for (const text of ['script: train.py\n', /```yaml\n(# job\.yaml\n[^]*?)```/.exec(page)![1]!]) {
      const { spec } = parsed(text)
      expect(checkJobSpec(JSON.parse(JSON.stringify(spec)))).toEqual({ spec })
    }
  })

  it.each([
    ['train.py', 'python3 train.py'],
    ['train.py --lr 3', 'python3 train.py --lr 3'],
    ['./src/train.py', 'python3 ./src/train.py'],
    ['"\\"my dir/train.py\\" --x"', 'python3 "my dir/train.py" --x'],
  ])('takes script: %s for run: %s', (script, run) => {
    expect(parsed(`script: ${script}\n`).spec.run).toBe(run)
  })

  it.each([
    ['My Train_job.v2.yaml', 'my-train-job-v2'],
    ['/some/where/run.yml', 'run'],
    ['...yaml', 'job'],
    [`${'x'.repeat(39)}-yz.yaml`, 'x'.repeat(39)],
  ])('named %s names its job %s', (fileName, name) => {
    expect(parsed('run: x\n', fileName).spec.name).toBe(name)
  })

  it.each([
    ['6h', { durationMs: 6 * HOUR }],
    ['6h on A100', { durationMs: 6 * HOUR, durationOn: 'A100' }],
    ['"1d 12h ON tesla v100"', { durationMs: 36 * HOUR, durationOn: 'V100' }],
  ])('takes the duration %s with the accelerator that it refers to', (written, expected) => {
    const { durationMs, durationOn } = parsed(`run: x\nduration: ${written}\n`).spec
    expect({ durationMs, durationOn }).toEqual({ durationOn: undefined, ...expected })
  })

  it('counts a deadline given as a duration from now', () => {
    expect(parsed('run: x\ndeadline: 36h\n').spec.deadlineAtMs).toBe(NOW + 36 * HOUR)
  })

  it('keeps environment variables as they stand', () => {
    const env = 'A: 1e-3\n  B: true\n  C: 007\n  D: no\n  E: "1.0"\n  F: 1.0\n  G: ""\n  H: 2026-01-01'
    expect(parsed(`run: x\nenv:\n  ${env}\n`).spec.env).toEqual({
      A: '1e-3',
      B: 'true',
      C: '007',
      D: 'no',
      E: '1.0',
      F: '1.0',
      G: '',
      H: '2026-01-01',
    })
  })

  it('takes the login to a registry, and what a recommendation to leave the machine is to bring', () => {
    const text =
      'run: x\nimage: ghcr.io/team/x:1\nimage_login: { username: robot, password: TOKEN }\non_rebalance: move\n'
    expect(parsed(text).spec).toMatchObject({
      imageLogin: { username: 'robot', secret: 'TOKEN' },
      onRebalance: 'move',
      secrets: [],
    })
  })

  it('takes a shell with its options, and whether outputs are required', () => {
    const text = 'run: x\nshell: bash -leo pipefail\noutputs: w.bin\nrequire_outputs: true\n'
    expect(parsed(text).spec).toMatchObject({ shell: 'bash -leo pipefail', requiresOutputs: true })
  })

  it('takes tags, whose values may look like numbers', () => {
    const { spec } = parsed('run: x\ntags: { project: ranker, cost-center: 42 }\n')
    expect(spec.tags).toEqual({ project: 'ranker', 'cost-center': '42' })
  })

  it('takes one entry for a list of one', () => {
    const { spec } = parsed(
      'run: x\nbackends: local\nsecrets: A\noutputs: w.bin\nresources: {accelerators: h100}\n',
    )
    expect(spec).toMatchObject({ backends: [{ backend: 'local' }], secrets: ['A'], outputs: ['w.bin'] })
    expect(spec.resources.accelerators).toEqual(['H100'])
  })

  it('takes inputs as a list, and their own names for their paths', () => {
    const text =
      'run: x\ninputs:\n  - https://example.com/a/my%20file.txt?v=1\n  - { source: "file:///srv/x/", path: d/x }\n  - file:///srv/y/\n'
    expect(parsed(text).spec.inputs).toEqual([
      { source: 'https://example.com/a/my%20file.txt?v=1', path: 'my file.txt' },
      { source: 'file:///srv/x/', path: 'd/x' },
      { source: 'file:///srv/y/', path: 'y' },
    ])
  })

  it('may use anchors and merges, JSON, and any line ends', () => {
    expect(
      parsed('env: &e {A: x}\nrun: x\nretries: {failures: &n 2, interruptions: *n}\n').spec,
    ).toMatchObject({
      env: { A: 'x' },
      retries: { failures: 2, interruptions: 2 },
    })
    expect(parsed('run: x\nenv:\n  <<: {A: x, B: y}\n  B: z\n').spec.env).toEqual({ A: 'x', B: 'z' })
    expect(parsed('{"run": "x", "resources": {"gpus": 1}}').spec.resources).toEqual({
      gpus: { min: 1, max: 1 },
    })
    expect(parsed('\uFEFFrun: x\r\nname: y\r\n').spec).toMatchObject({ run: 'x', name: 'y' })
  })

  it('may send nothing along', () => {
    expect(parsed('run: x\nworkdir: false\n').workdir).toBeNull()
  })
})

describe('a job from flags', () => {
  const flags: Readonly<Record<string, string>> = {
    'resources.gpu_memory': '--gpu-memory',
    deadline: '--deadline',
    env: '--env',
  }
  const options = {
    nowMs: NOW,
    defaultName: 'train.py',
    flagOf: (path: readonly PropertyKey[]) => flags[path.join('.')] ?? flags[String(path[0])],
  }

  it('is read as from a file', () => {
    const value = {
      script: 'train.py',
      resources: { gpu_memory: '24GB', gpus: '1' },
      deadline: '36h',
      env: { LR: '1e-3' },
    }
    const fromFile = parsed(
      'script: train.py\nname: train-py\nresources: {gpu_memory: 24GB, gpus: 1}\ndeadline: 36h\nenv: {LR: 1e-3}\n',
    )
    expect(parseJobObject(value, options)).toEqual({ job: fromFile })
  })

  it('names the flag that is wrong', () => {
    const value = {
      run: 'x',
      resources: { gpu_memory: '24', cpus: 'many' },
      deadline: true,
      env: { '1A': 'x' },
    }
    const result = parseJobObject(value, options)
    expect('problems' in result ? result.problems.map(formatProblem).sort() : result).toEqual([
      '--deadline must be a text, but is true. Put it in quotes: "true".',
      '--env "1A" is not the name of a variable. Use letters, digits and _, no digit first.',
      '--gpu-memory "24" is not a size. Add its unit: 24GB or 24GiB.',
      'resources.cpus "many" is not a whole number or a range of them. Write 4, 16+ (at least), 2..8 (from, to) or ..8 (at most).',
    ])
  })

  it('shows an example with the flag', () => {
    const result = parseJobObject({ run: 'x', resources: { gpu_memory: true } }, options)
    expect('problems' in result && result.problems).toEqual([
      {
        flag: '--gpu-memory',
        path: 'resources.gpu_memory',
        message: 'must be a size or a range of sizes, but is true',
        remedy: 'write, for example, --gpu-memory 24GB',
      },
    ])
  })
})
