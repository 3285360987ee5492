import { describe, expect, it } from '@jest/globals'
import { slurmScriptOf } from '../../intake/peers'
import { clockTime } from '../../intake/units'
import { complaints as complaintsIn, parsed } from './reading'

const complaints = (text: string): string[] => complaintsIn(text).map((one) => one.trim())

describe('a file of another program', () => {
  it.each<[string, string, string, string[]]>([
    [
      'SkyPilot',
      `resources:
  accelerators: A100:8
  cloud: aws
  use_spot: true
  memory: 64+
num_nodes: 1
envs: { LR: 3 }
setup: pip install -r requirements.txt
run: python train.py
`,
      'this is a SkyPilot file',
      [
        'resources.accelerators is resources: { accelerators: A100, gpus: 8 }',
        'resources.cloud is backends: ec2',
        'resources.use_spot is interruptible: true',
        'resources.memory is resources: { memory: 64GB }',
        'num_nodes is not needed',
        'envs is env',
      ],
    ],
    [
      'SkyPilot for several machines elsewhere',
      'resources: { infra: gcp/us-central1, accelerators: { H100: 8 } }\nnum_nodes: 4\nrun: x\n',
      'this is a SkyPilot file',
      [
        'resources.infra has no equivalent for gcp: backends are ec2, lambda, modal and local',
        'resources.accelerators is resources: { accelerators: H100, gpus: 8 }',
        'num_nodes has no equivalent: one machine runs a job',
      ],
    ],
    [
      'dstack',
      `type: task
name: train
commands: [pip install x, python train.py]
env: [HF_TOKEN, LR=3]
resources: { gpu: "A100:80GB:2", memory: 64GB.., shm_size: 8GB }
spot_policy: auto
max_duration: 12h
`,
      'this is a dstack file (type: task)',
      [
        'type is not needed',
        'commands is run, one command per line after "run: |"',
        'env is env: a mapping of names to values; a name alone belongs under secrets',
        'resources.gpu is resources: { accelerators: A100, gpu_memory: 80GB, gpus: 2 }',
        'resources.shm_size is resources: { shm: 8GB }',
        'spot_policy is interruptible: true',
        'max_duration is deadline: 12h',
      ],
    ],
    [
      'Docker Compose',
      'services:\n  train:\n    image: x\n    command: python train.py\n    environment: { A: 1 }\n    ports: ["80:80"]\n',
      'this is a Docker Compose file',
      ['command is run', 'environment is env', 'ports has no equivalent: machines accept no connections'],
    ],
    [
      'Kubernetes',
      `apiVersion: batch/v1
kind: Job
metadata: { name: train }
spec:
  backoffLimit: 2
  template:
    spec:
      containers:
        - image: x
          command: [python, train.py]
          resources: { limits: { nvidia.com/gpu: 1 } }
`,
      'this is a Kubernetes manifest (kind: Job)',
      ['command is run', 'nvidia.com/gpu is resources.gpus', 'backoffLimit is retries.failures'],
    ],
  ])('of %s is recognised, with its keys as they are written here', (_of, text, what, keys) => {
    expect(complaints(text)).toEqual([`${what}. Write a job file. There, ${keys.join('; ')}.`])
  })

  it('of Kubernetes is recognised with several documents', () => {
    const [first, ...others] = complaints(
      'apiVersion: v1\nkind: Pod\nspec: { args: [x], image: y }\n---\napiVersion: v1\nkind: Service\n',
    )
    expect(first).toBe('this is a Kubernetes manifest. Write a job file. There, args is run.')
    expect(others).toEqual([])
  })

  it.each([
    ['[A100, H100:4]', '{ accelerators: [ A100, H100 ], with the number in gpus }'],
    ['[A100:4, H100:4]', '{ accelerators: [ A100, H100 ], gpus: 4 }'],
    ['[A100]', '{ accelerators: A100, gpus: 1 }'],
    ['{ H100: 2, A100: 8 }', '{ accelerators: [ H100, A100 ], with the number in gpus }'],
  ])('translates the accelerators %s with their number only where it is one', (accelerators, words) => {
    const text = `resources: { infra: aws, accelerators: ${accelerators} }\nnum_nodes: 1\nrun: x\n`
    expect(complaints(text).join('\n')).toContain(`resources.accelerators is resources: ${words}`)
  })

  it('is not suspected for one field of another scheduler, nor for a job that can be read', () => {
    expect(complaints('run: x\nenvs: { A: b }\n')).toEqual(['2:1: envs is not a field. Did you mean env?'])
    expect(complaints('run: x\nresources: { accelerators: "H100:8" }\n')).toHaveLength(1)
    expect(parsed('run: x\nresources: { accelerators: [H100] }\n').spec.run).toBe('x')
  })

  it('of Slurm is recognised by its options', () => {
    const script = `#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gres=gpu:a100:4
#SBATCH -c 8
#SBATCH --mem=64G
#SBATCH --time=2-12:00:00
#SBATCH --partition=gpu
#SBATCH --array=1-10
srun python train.py
`
    expect(slurmScriptOf(script)).toEqual({
      what: 'a Slurm batch script',
      keys: [
        '--job-name is name: train',
        '--gres is resources: { gpus: 4, accelerators: A100 }',
        '-c is resources: { cpus: 8 }',
        '--mem is resources: { memory: 64GB }',
        '--time is deadline: 2d12h',
        '--partition has no equivalent',
        '--array has no equivalent: submit one job for each task',
      ],
    })
    expect(slurmScriptOf('#!/bin/sh\necho "SBATCH"\n')).toBeUndefined()
  })

  it.each([
    ['30', '30m'],
    ['12:00:00', '12h'],
    ['90:30', '90m'],
    ['1-6', '1d6h'],
    ['2-00:30:00', '2d30m'],
    ['soon', undefined],
  ])('of Slurm may run for %s, which is %s', (text, duration) => {
    expect(clockTime(text)).toBe(duration)
  })
})
