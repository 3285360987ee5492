import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../core/job/job'
import { runCli } from '../../cli/run'
import { World } from './outside'

const SCRIPTS = join(__dirname, '..', 'analyze', 'scripts')

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world.remove())

interface DryRun {
  spec: JobSpec
  stderr: string
}

/** What would be submitted: the script of a sample, with flags before its own arguments. */
async function dryRun(sample: string, ...flags: string[]): Promise<DryRun> {
  cpSync(join(SCRIPTS, sample), join(world.home, 'code'), { recursive: true })
  return submitted(join(world.home, 'code', 'train.py'), ...flags)
}

async function submitted(file: string, ...flags: string[]): Promise<DryRun> {
  const { stdout, stderr } = await world.run('submit', '--dry-run', '--json', ...flags, file)
  return { spec: (JSON.parse(stdout) as { spec: JobSpec }).spec, stderr }
}

const RESUMES = 'python3 train.py ${CRUCIBLE_RESUME_FROM:+--resume "$CRUCIBLE_RESUME_FROM"}'

describe('a submission of a script', () => {
  it('takes from the script what no flag sets, with the place of each', async () => {
    const { spec, stderr } = await dryRun('torch-epochs-full')
    expect(spec).toMatchObject({ run: RESUMES, isInterruptible: true, checkpoint: { directory: 'runs' } })
    expect(spec.resources).toEqual({})
    expect(spec.inferred!.map(({ field, from }) => [field, from])).toEqual([
      ['checkpoint.directory', 'train.py:48'],
      ['run', 'train.py:36'],
      ['interruptible', 'train.py:36'],
    ])
    expect(stderr).toContain(
      'Set from train.py:48: checkpoint.directory runs, because the program saves there.\n',
    )
  })

  it('lets every flag decide', async () => {
    const { spec } = await dryRun('torch-epochs-full', '--no-interruptible', '--checkpoint-dir', 'mine')
    expect(spec).toMatchObject({ isInterruptible: false, checkpoint: { directory: 'mine' } })
    expect(spec.inferred!.map(({ field }) => field)).toEqual(['run'])
  })

  it('is not filled in from the script if the flag forbids it', async () => {
    const { spec, stderr } = await dryRun('torch-epochs-full', '--no-analyze')
    expect(spec).toMatchObject({ run: 'python3 train.py', isInterruptible: false, checkpoint: {} })
    expect(spec).not.toHaveProperty('inferred')
    expect(stderr).not.toContain('Set from')
  })

  it.each([
    ['torch-final-only', 'mnist.py'],
    ['torch-weights-only', 'train.py'],
    ['amp-scaler', 'unet.py'],
    ['scheduler-not-restored', 'train.py'],
  ])('is not interruptible if the script cannot resume: %s', async (sample, name) => {
    cpSync(join(SCRIPTS, sample), join(world.home, 'code'), { recursive: true })
    const { spec } = await submitted(join(world.home, 'code', name), '--checkpoint-dir', 'mine')
    expect(spec.isInterruptible).toBe(false)
  })

  it.each([
    ['torch-final-only', 'mnist.py', 'cannot resume'],
    ['torch-weights-only', 'train.py', 'cannot completely resume'],
  ])('names the command that suggests how a script resumes: %s', async (sample, name, cannot) => {
    cpSync(join(SCRIPTS, sample), join(world.home, 'code'), { recursive: true })
    const file = join(world.home, 'code', name)
    const command = `crucible analyze --suggest-resume ${file}`
    const hint = `${name} ${cannot} after an interruption. For a change that makes it: ${command}\n`
    expect((await submitted(file)).stderr).toContain(hint)
    expect((await world.run('plan', file)).stderr).toContain(hint)
    // The command can be typed as it is printed.
    const [, ...words] = command.split(' ')
    expect((await world.run(...words)).stderr).toMatch(/^(The changed program saves|No change suggested)/)
    expect((await submitted(file, '--no-interruptible')).stderr).not.toContain('--suggest-resume')
  })

  it('is refused if it names an accelerator without CUDA and the script ends without CUDA', async () => {
    mkdirSync(join(world.home, 'code'))
    const file = join(world.home, 'code', 'train.py')
    const lines = [
      'import torch',
      'model = torch.nn.Linear(9, 9).cuda()',
      'optimizer = torch.optim.SGD(model.parameters(), lr=0.1)',
    ]
    const loop = [
      'for epoch in range(9):',
      '    loss = model(torch.ones(9).cuda()).sum()',
      '    loss.backward()',
      '    optimizer.step()',
    ]
    writeFileSync(file, [...lines, ...loop, "torch.save(model.state_dict(), 'model.pt')", ''].join('\n'))
    const refused = await world.run('submit', '--dry-run', '--accelerator', 'trn1', file)
    expect(refused.exitCode).toBe(2)
    expect(refused.stderr).toMatch(/train\.py:2 needs CUDA, which Trainium lacks\..*\n.*--no-analyze/)
    for (const flags of [
      ['--accelerator', 'A10G'],
      ['--accelerator', 'trn1', '--no-analyze'],
    ])
      expect((await world.run('submit', '--dry-run', ...flags, file)).stderr).not.toContain('CUDA')
  })

  it('says in the plan that it could not tell whether a script trains', async () => {
    cpSync(join(SCRIPTS, 'engine-not-here'), join(world.home, 'code'), { recursive: true })
    const file = join(world.home, 'code', 'main.py')
    expect((await world.run('plan', file)).stderr).toContain(
      `Could not tell whether ${file} trains a model: wavekit (main.py:4) is neither in the project nor a known library.\n`,
    )
  })

  it('names no change for a script that resumes', async () => {
    expect((await dryRun('torch-epochs-full')).stderr).not.toContain('--suggest-resume')
  })

  it('adds no option that resumes to one that is given', async () => {
    cpSync(join(SCRIPTS, 'ddp-spawn-imagenet'), world.home, { recursive: true })
    const file = join(world.home, 'job.yaml')
    const run = 'python main.py --data /data/imagenet --resume checkpoint.pth.tar -b 512'
    writeFileSync(file, `run: ${run}\n`)
    expect((await submitted(file)).spec.run).toBe(run)
  })

  it('asks for the GPUs that it stops without, and for no others', async () => {
    expect((await dryRun('gpu-assert')).spec.resources).toEqual({ gpus: { min: 1, max: 1 } })
    const named = await dryRun('gpu-assert', '--accelerator', 'H100')
    expect(named.spec.resources).toEqual({ accelerators: ['H100'] })
  })

  it('asks for any number of GPUs if it stops without one, and how many is not known', async () => {
    mkdirSync(join(world.home, 'code'))
    const text = readFileSync(join(SCRIPTS, 'gpu-assert', 'train.py'), 'utf8')
    writeFileSync(join(world.home, 'code', 'train.py'), text)
    writeFileSync(join(world.home, 'code', 'job.yaml'), 'run: torchrun train.py\n')
    const { spec, stderr } = await submitted(join(world.home, 'code', 'job.yaml'))
    expect(spec.resources.gpus).toEqual({ min: 1 })
    expect(stderr).toContain('It is not known how many GPUs train.py needs: add --gpus.')
  })

  describe('that probably takes days without a GPU', () => {
    const asked: string[] = []

    /** The output of a plan at a terminal whose user answers. */
    async function atTerminal(answer: string, ...flags: string[]): Promise<string> {
      asked.length = 0
      cpSync(join(SCRIPTS, 'trl-sft'), join(world.home, 'code'), { recursive: true })
      const { outside, stdout, stderr } = world.outside()
      stdout.isTTY = true
      const ask = async (question: string): Promise<string> => {
        asked.push(question)
        return answer
      }
      await runCli(['plan', ...flags, join(world.home, 'code', 'sft.py')], { ...outside, ask })
      return `${stdout.text}${stderr.text}`
    }

    it('asks a person at a terminal, whose word counts', async () => {
      const yes = await atTerminal('y')
      expect(asked).toEqual([
        expect.stringMatching(
          /^sft\.py would probably take days without a GPU \(\d\d % sure\)\. Ask for GPUs\? /,
        ),
      ])
      expect(yes).toMatch(/Set from sft\.py:\d+: resources\.gpus \S+, because a CPU would take days\./)
      const no = await atTerminal('n')
      expect(no).toMatch(/would probably take days without a GPU .*: add --gpus 1\./)
      expect(no).not.toContain('resources.gpus')
    })

    it('is planned as it is without a terminal, with GPUs that are set, and where the setting forbids questions', async () => {
      cpSync(join(SCRIPTS, 'trl-sft'), join(world.home, 'code'), { recursive: true })
      const { spec, stderr } = await submitted(join(world.home, 'code', 'sft.py'))
      expect(spec.resources.gpus).toBeUndefined()
      expect(stderr).toMatch(/would probably take days without a GPU .*: add --gpus 1\./)
      await atTerminal('y', '--gpus', '2')
      world.environment['CRUCIBLE_SUBMIT_CONFIRM'] = 'no'
      await atTerminal('y')
      expect(asked).toEqual([])
    })
  })

  it('leaves a program that reads our variables as it is', async () => {
    writeFileSync(
      join(world.home, 'train.py'),
      [
        'import os, torch',
        'folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]',
        'resume = os.environ.get("CRUCIBLE_RESUME_FROM")',
        'model = torch.nn.Linear(2, 1)',
        'optimizer = torch.optim.Adam(model.parameters())',
        'start = 0',
        'if resume:',
        '    state = torch.load(resume)',
        '    model.load_state_dict(state["model"])',
        '    optimizer.load_state_dict(state["optimizer"])',
        '    start = state["step"]',
        'for step in range(start, 100):',
        '    loss = model(torch.randn(4, 2)).sum()',
        '    loss.backward()',
        '    optimizer.step()',
        '    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, f"{folder}/{step}.pt")',
      ].join('\n'),
    )
    const { spec } = await submitted(join(world.home, 'train.py'))
    expect(spec).toMatchObject({ run: 'python3 train.py', isInterruptible: true, checkpoint: {} })
  })
})

describe('the family of work', () => {
  it('is taken from a program that shows it, for a job with GPUs', async () => {
    writeFileSync(
      join(world.home, 'train.py'),
      [
        'import torch',
        'from transformers import AutoModelForCausalLM',
        'model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()',
        'optimizer = torch.optim.AdamW(model.parameters())',
        'for x in torch.utils.data.DataLoader(data, batch_size=8):',
        '    with torch.autocast("cuda", dtype=torch.bfloat16):',
        '        loss = model(**x).loss',
        '    loss.backward()',
        '    optimizer.step()',
      ].join('\n'),
    )
    const { spec, stderr } = await submitted(join(world.home, 'train.py'), '--gpus', '1')
    expect(spec.workFamily).toBe('transformer')
    expect(stderr).toMatch(
      /Set from train\.py:\d+: work_family transformer, because that is what it trains\./,
    )
  })

  it('is what a flag says', async () => {
    const { spec } = await dryRun('gpt-configurator', '--gpus', '1', '--work-family', 'fp32')
    expect(spec.workFamily).toBe('fp32')
  })
})

describe('the memory of GPUs', () => {
  const train = (optimizer: string, size = 'gpt2-xl'): string[] => [
    'import torch',
    'from transformers import AutoModelForCausalLM',
    `model = AutoModelForCausalLM.from_pretrained("${size}").cuda()`,
    `optimizer = ${optimizer}`,
    'max_length = 128',
    'for x in torch.utils.data.DataLoader(data, batch_size=1):',
    '    model(**x).loss.backward()',
    '    optimizer.step()',
  ]
  const ADAM = 'torch.optim.AdamW(model.parameters())'
  const submit = (lines: readonly string[], ...flags: string[]): Promise<DryRun> => {
    writeFileSync(join(world.home, 'train.py'), lines.join('\n'))
    return submitted(join(world.home, 'train.py'), ...flags)
  }

  it('is asked for if the program tells its model, optimizer and batch', async () => {
    const { spec, stderr } = await submit(train(ADAM))
    const { gpuMemoryGb } = spec.resources
    // 1.56 billion parameters of 16 bytes are 24.9 GB.
    expect(gpuMemoryGb!.min).toBeGreaterThan(25)
    expect(gpuMemoryGb!.min).toBeLessThan(45)
    expect(gpuMemoryGb!.max).toBeUndefined()
    expect(stderr).toMatch(
      /Set from train\.py:3: resources\.gpu_memory \d+GB\+, because it needs \d+ to \d+ GiB\.\n/,
    )
  })

  it.each([
    ['--gpu-memory', '24GB', { gpuMemoryGb: { min: 24 } }],
    ['--accelerator', 'T4', { accelerators: ['T4'] }],
  ])('is what %s says', async (flag, value, resources) => {
    const { spec } = await submit(train(ADAM), '--gpus', '1', flag, value)
    expect(spec.resources).toEqual({ gpus: { min: 1, max: 1 }, ...resources })
  })

  it('is only mentioned if the range is not sure', async () => {
    const { spec, stderr } = await submit(train('make_optimizer(model)'))
    expect(spec.resources).toEqual({ gpus: { min: 1, max: 1 } })
    expect(stderr).toMatch(
      /train\.py needs at least \d+ GiB of memory on each GPU; the optimizer would narrow it: add --gpu-memory\./,
    )
  })

  it('is only mentioned if no GPU has so much', async () => {
    const { spec, stderr } = await submit(train(ADAM, 'meta-llama/Llama-2-70b-hf'))
    expect(spec.resources).toEqual({ gpus: { min: 1, max: 1 } })
    expect(stderr).toContain('more than any has: shard the model')
  })

  it('is not asked for if the job uses no GPU', async () => {
    const { spec } = await submit(train(ADAM), '--gpus', '0')
    expect(spec.resources.gpuMemoryGb).toBeUndefined()
  })
})

describe('the run time', () => {
  it('is mentioned if no duration is given', async () => {
    writeFileSync(
      join(world.home, 'train.py'),
      [
        'import torch, torchvision',
        'model = torchvision.models.resnet50().cuda()',
        'optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)',
        'data = torchvision.datasets.ImageNet("data")',
        'for epoch in range(90):',
        '    for x, y in torch.utils.data.DataLoader(data, batch_size=256):',
        '        torch.nn.functional.cross_entropy(model(x), y).backward()',
        '        optimizer.step()',
      ].join('\n'),
    )
    const hint = /train\.py takes about [\d.]+ to [\d.]+ h on 1 A100 by its model and steps: add --duration/
    expect((await submitted(join(world.home, 'train.py'))).stderr).toMatch(hint)
    const { stderr } = await submitted(join(world.home, 'train.py'), '--duration', '20h')
    expect(stderr).not.toContain('takes about')
  })
})

describe('a submission of a job file', () => {
  it('changes nothing that the file says', async () => {
    cpSync(join(SCRIPTS, 'torch-epochs-full'), world.home, { recursive: true })
    const file = join(world.home, 'job.yaml')
    writeFileSync(file, 'run: python3 train.py --resume runs/epoch3.pt\ninterruptible: false\n')
    const { spec } = await submitted(file)
    expect(spec).toMatchObject({ run: 'python3 train.py --resume runs/epoch3.pt', isInterruptible: false })
    writeFileSync(file, 'run: python3 train.py\n')
    expect((await submitted(file)).spec).toMatchObject({ run: RESUMES, isInterruptible: true })
  })
})
