import { beforeAll, describe, expect, it } from '@jest/globals'
import { analyze, type Analysis, type PythonParser } from '../../packages/analyzer/src/analyze'
import { parser } from './corpus'

type Findings = Analysis['findings']

const FINE_TUNE = (load: string, more = ''): string => `
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf"${load})
${more}
args = TrainingArguments(output_dir="out", per_device_train_batch_size=1, bf16=True, max_steps=100)
trainer = Trainer(model=model, args=args, train_dataset=data)
max_length = 512
trainer.train()
`

const LOOP = (model: string, optimizer: string, more = ''): string => `
import torch, torchvision
from torch import nn
${more}
model = ${model}
optimizer = ${optimizer}
loader = torch.utils.data.DataLoader(data, batch_size=16)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
`

const PUBLISHED = 'torchvision.models.resnet18()'
const PARAMETERS = 11_689_512
/** One copy of the weights in fp32. */
const COPY_GIB = (PARAMETERS * 4) / 2 ** 30

describe('the memory finding', () => {
  let python: PythonParser
  const findings = (text: string, command = 'python train.py'): Findings =>
    analyze(python, {
      files: { list: () => ['train.py'], read: (path) => (path === 'train.py' ? text : undefined) },
      command,
    }).findings
  const component = (
    found: Findings,
    name: 'weights' | 'gradients' | 'optimizer' | 'activations',
  ): { lowGiB: number; highGiB: number } => found.memory.value!.components[name]

  beforeAll(async () => {
    python = await parser()
  })

  it('counts 16 bytes a parameter for Adam in fp32', () => {
    const found = findings(LOOP(PUBLISHED, 'torch.optim.Adam(model.parameters())'))
    expect(found.modelParams.value).toBe(PARAMETERS)
    expect(component(found, 'weights').lowGiB).toBeCloseTo(COPY_GIB, 5)
    expect(component(found, 'gradients').lowGiB).toBeCloseTo(COPY_GIB, 5)
    expect(component(found, 'optimizer').lowGiB).toBeCloseTo(2 * COPY_GIB, 5)
  })

  it.each([
    ['torch.optim.SGD(model.parameters(), lr=0.1)', 0],
    ['torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)', 1],
    ['torch.optim.Adam(model.parameters(), amsgrad=True)', 3],
    ['torch.optim.Adagrad(model.parameters())', 1],
  ])('counts the state of %s', (optimizer, copies) => {
    const found = findings(LOOP(PUBLISHED, optimizer))
    expect(component(found, 'optimizer').highGiB).toBeCloseTo(copies * COPY_GIB, 4)
  })

  it('counts what a quantized model with adapters keeps: its weights, and little else', () => {
    const adapters = `
from peft import LoraConfig, get_peft_model
model = get_peft_model(model, LoraConfig(r=16))
`
    const whole = findings(FINE_TUNE(''))
    const small = findings(FINE_TUNE(', load_in_4bit=True', adapters))
    expect(component(whole, 'optimizer').lowGiB).toBeCloseTo((6_738_415_616 * 8) / 2 ** 30, 0)
    expect(component(small, 'weights').highGiB).toBeLessThan(6.5)
    expect(component(small, 'optimizer').highGiB).toBeLessThan(1)
    expect(small.memory.value!.highGiB).toBeLessThan(whole.memory.value!.lowGiB / 5)
  })

  it('divides the state by the GPUs that share it', () => {
    const text = `
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from transformers import AutoModelForCausalLM
model = FSDP(AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf").cuda())
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(data, batch_size=1)
max_length = 512
for x in loader:
    model(**x).loss.backward()
    optimizer.step()
`
    const eight = findings(text, 'torchrun --nproc_per_node 8 train.py')
    const unknown = findings(text, 'torchrun train.py')
    expect(component(eight, 'optimizer').highGiB).toBeCloseTo((6_738_415_616 * 8) / 2 ** 30 / 8, 1)
    expect(unknown.memory.missing).toContain('the number of GPUs')
    expect(unknown.memory.confidence).toBeLessThan(eight.memory.confidence)
  })

  it.each([
    ['--use_fsdp true', 8],
    ['--use_deepspeed true', 8],
    ['--use_deepspeed true --zero_stage 1', 12],
  ])('counts for Adam of accelerate launch %s %d bytes for each weight', (flags, bytes) => {
    const text = LOOP(PUBLISHED, 'torch.optim.Adam(model.parameters())')
    const found = findings(
      text,
      `accelerate launch --mixed_precision bf16 --num_processes 1 ${flags} train.py`,
    )
    expect(component(found, 'optimizer').highGiB).toBeCloseTo((PARAMETERS * bytes) / 2 ** 30, 2)
  })

  it('reads the optimizer and the sharding of a DeepSpeed configuration', () => {
    const texts: Record<string, string> = {
      'train.py': `
import deepspeed
from transformers import AutoModelForCausalLM
max_length = 512
model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-1.4b")
engine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=data)
for x in loader:
    engine.backward(engine(x).loss)
    engine.step()
`,
      'zero.json': JSON.stringify({
        train_micro_batch_size_per_gpu: 2,
        fp16: { enabled: true },
        zero_optimization: { stage: 1 },
        optimizer: { type: 'AdamW' },
      }),
    }
    const found = analyze(python, {
      files: { list: () => Object.keys(texts), read: (path) => texts[path] },
      command: 'deepspeed --num_gpus=4 train.py --deepspeed --deepspeed_config zero.json',
    }).findings
    const gib = 1_414_650_000 / 2 ** 30
    expect(found.memory.missing).toEqual([])
    expect(component(found, 'weights').highGiB).toBeCloseTo(2 * gib, 2)
    expect(component(found, 'optimizer').highGiB).toBeCloseTo((12 * gib) / 4, 2)
  })

  it('counts copies of autocast and the step of the optimizer at different times', () => {
    const text = LOOP(
      'AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-6.9b").cuda()',
      'torch.optim.SGD(model.parameters(), lr=0.1)',
      'from transformers import AutoModelForCausalLM\nmax_length = 8\nscaler = torch.cuda.amp.GradScaler()',
    ).replace(
      'loss = nn.functional.cross_entropy(model(x), y)',
      'with torch.autocast("cuda", dtype=torch.float16):\n        loss = nn.functional.cross_entropy(model(x), y)',
    )
    const found = findings(text)
    const gib = (6_857_300_000 * 4) / 2 ** 30
    expect(found.precision.value).toBe('fp16-mixed')
    expect(component(found, 'weights').highGiB).toBeCloseTo(gib, 1)
    expect(component(found, 'activations').highGiB).toBeCloseTo(gib, 1)
  })

  it('says what would narrow it, and is less sure', () => {
    const known = findings(LOOP(PUBLISHED, 'torch.optim.Adam(model.parameters())', 'image_size = 224'))
    const open = findings(
      LOOP(PUBLISHED, 'make_optimizer(model)').split('batch_size=16').join('batch_size=size()'),
    )
    expect(known.memory.missing).toEqual([])
    expect(open.memory.missing).toEqual(expect.arrayContaining(['the optimizer', 'the batch size']))
    expect(open.memory.confidence).toBeLessThan(known.memory.confidence)
  })

  it.each([
    ['a model whose size no line shows', LOOP('load_model()', 'torch.optim.Adam(model.parameters())')],
    [
      'a network of its own layers',
      LOOP('nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 4))', 'torch.optim.Adam(model.parameters())'),
    ],
    [
      'the model that Megatron-LM builds',
      'from megatron.training import pretrain\npretrain(data, model, kind, step)',
    ],
    [
      'a published model that is not in the table',
      FINE_TUNE('').split('meta-llama/Llama-2-7b-hf').join('lab/own-model'),
    ],
  ])('says nothing of %s', (_, text) => {
    const { memory } = findings(text)
    expect(memory.value).toBeNull()
    expect(memory.missing).not.toEqual([])
  })

  it('is a floor for a published model with many layers of its own, and a new last layer changes little', () => {
    const withLayers = (layers: string): Findings =>
      findings(LOOP(PUBLISHED, 'torch.optim.Adam(model.parameters())', `image_size = 224\n${layers}`))
    const added = withLayers('decoder = nn.Sequential(nn.Conv2d(512, 256, 3), nn.Conv2d(256, 64, 3))')
    expect(added.memory.missing).toEqual(['the size of the layers that it adds'])
    expect(added.memory.confidence).toBeLessThan(0.5)
    expect(withLayers('head = nn.Linear(512, 10)').memory.missing).toEqual([])
  })

  it('counts no CUDA context for a program that uses no GPU', () => {
    const onCpu = findings(LOOP(PUBLISHED, 'torch.optim.Adam(model.parameters())'))
    const onGpu = findings(LOOP(`${PUBLISHED}.cuda()`, 'torch.optim.Adam(model.parameters())'))
    expect(onCpu.memory.value!.components.context.highGiB).toBe(0)
    expect(onGpu.memory.value!.components.context.lowGiB).toBeGreaterThan(0)
  })
})
