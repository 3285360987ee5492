import { beforeAll, describe, expect, it } from '@jest/globals'
import { analyze, type Analysis, type PythonParser } from '../../intake/analyze/analyze'
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
import torch
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
    const found = findings(LOOP('nn.Linear(1024, 1024, bias=False)', 'torch.optim.Adam(model.parameters())'))
    const mebibytes = 1024 * 1024 * 4
    const gib = mebibytes / 2 ** 30
    expect(found.modelParams.value).toBe(1024 * 1024)
    expect(component(found, 'weights').lowGiB).toBeCloseTo(gib, 5)
    expect(component(found, 'gradients').lowGiB).toBeCloseTo(gib, 5)
    expect(component(found, 'optimizer').lowGiB).toBeCloseTo(2 * gib, 5)
  })

  it.each([
    ['torch.optim.SGD(model.parameters(), lr=0.1)', 0],
    ['torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)', 1],
    ['torch.optim.Adam(model.parameters(), amsgrad=True)', 3],
    ['torch.optim.Adagrad(model.parameters())', 1],
  ])('counts the state of %s', (optimizer, copies) => {
    const found = findings(LOOP('nn.Linear(1024, 1024, bias=False)', optimizer))
    expect(component(found, 'optimizer').highGiB).toBeCloseTo((copies * 4) / 1024, 5)
  })

  it('counts layers that a loop or a comprehension makes, and layers that share their weights once', () => {
    const model = `
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.blocks = nn.ModuleList([nn.Linear(64, 64) for _ in range(depth)])
        self.more = nn.ModuleList()
        for _ in range(2):
            self.more.append(nn.LayerNorm(64))
        self.head = nn.Linear(64, 100, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
`
    const found = findings(LOOP('Net(12)', 'torch.optim.Adam(model.parameters())', model))
    expect(found.modelParams.value).toBe(100 * 64 + 12 * (64 * 64 + 64) + 2 * 128)
  })

  it('counts a model once that is either new or restored', () => {
    const model = `
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(64, 10)
    def forward(self, x):
        return self.out(x)
if resumes():
    model = Net()
    model.load_state_dict(torch.load("model.pt"))
`
    const found = findings(LOOP('Net()', 'torch.optim.Adam(model.parameters())', model))
    expect(found.modelParams.value).toBe(650)
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
        ...{ train_micro_batch_size_per_gpu: 2, fp16: { enabled: true } },
        ...{ zero_optimization: { stage: 1 }, optimizer: { type: 'AdamW' } },
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
      'nn.Linear(4096, 4096, bias=False).cuda()',
      'torch.optim.SGD(model.parameters(), lr=0.1)',
      'scaler = torch.cuda.amp.GradScaler()',
    ).replace(
      'loss = nn.functional.cross_entropy(model(x), y)',
      'with torch.autocast("cuda", dtype=torch.float16):\n        loss = nn.functional.cross_entropy(model(x), y)',
    )
    const found = findings(text)
    const gib = (4096 * 4096 * 4) / 2 ** 30
    expect(found.precision.value).toBe('fp16-mixed')
    expect(component(found, 'weights').highGiB).toBeCloseTo(gib, 4)
    expect(component(found, 'activations').highGiB).toBeCloseTo(gib, 4)
  })

  it('says what would narrow it, and is less sure', () => {
    const known = findings(LOOP('nn.Sequential(nn.Linear(64, 64))', 'torch.optim.Adam(model.parameters())'))
    const open = findings(
      LOOP('nn.Sequential(nn.Linear(64, 64))', 'make_optimizer(model)')
        .split('batch_size=16')
        .join('batch_size=size()'),
    )
    expect(known.memory.missing).toEqual([])
    expect(open.memory.missing).toEqual(expect.arrayContaining(['the optimizer', 'the batch size']))
    expect(open.memory.confidence).toBeLessThan(known.memory.confidence)
  })

  it.each([
    ['a model whose size nothing tells', LOOP('load_model()', 'torch.optim.Adam(model.parameters())')],
    [
      'sizes that only the run knows',
      LOOP('nn.Linear(len(data), 4)', 'torch.optim.Adam(model.parameters())'),
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

  it('counts no CUDA context for a program that uses no GPU', () => {
    const onCpu = findings(LOOP('nn.Linear(8, 8)', 'torch.optim.Adam(model.parameters())'))
    const onGpu = findings(LOOP('nn.Linear(8, 8).cuda()', 'torch.optim.Adam(model.parameters())'))
    expect(onCpu.memory.value!.components.context.highGiB).toBe(0)
    expect(onGpu.memory.value!.components.context.lowGiB).toBeGreaterThan(0)
  })

  describe('of a program that trains with Megatron-LM', () => {
    const TEXT = `
from megatron.training import pretrain
pretrain(data, model, kind, step)
`
    const megatron = (options: string): Findings =>
      findings(TEXT, `torchrun --nproc_per_node 8 train.py ${options}`)
    const SIZES = '--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --vocab-size 50257'
    const LENGTHS = '--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4'

    it('counts the parameters that Megatron-LM prints for its model of 345 million, on one GPU and on each of two', () => {
      const one = megatron(`${SIZES} ${LENGTHS}`)
      const two = megatron(`${SIZES} ${LENGTHS} --tensor-model-parallel-size 2`)
      // Logs: "number of parameters on model parallel rank 0: 354871296", and 178100224 with two ranks and a vocabulary of 50432.
      expect(one.modelParams.value).toBe(354_871_296)
      expect(component(one, 'weights').lowGiB).toBeCloseTo((354_871_296 * 4) / 2 ** 30, 3)
      expect(component(two, 'weights').lowGiB).toBeCloseTo((178_100_224 * 4) / 2 ** 30, 3)
      expect(component(two, 'weights').highGiB).toBe(component(two, 'weights').lowGiB)
    })

    // Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", table 1: a vocabulary of 51,200, 2,048 positions.
    it.each([
      [1.7, 24, 2304, 24],
      [3.6, 30, 3072, 32],
      [7.5, 36, 4096, 32],
      [18.4, 40, 6144, 48],
      [39.1, 48, 8192, 64],
      [76.1, 60, 10240, 80],
      [145.6, 80, 12288, 96],
      [310.1, 96, 16384, 128],
      [529.6, 105, 20480, 128],
      [1008, 128, 25600, 160],
    ])('counts the %d billion parameters of a published model', (billions, layers, width, heads) => {
      const found = megatron(
        `--num-layers ${layers} --hidden-size ${width} --num-attention-heads ${heads} --vocab-size 51200 --seq-length 2048 --max-position-embeddings 2048`,
      )
      expect(Math.abs(found.modelParams.value! / 1e9 - billions)).toBeLessThan(0.06)
    })

    it.each([
      ['--bf16', 18],
      ['--fp16', 20],
      ['', 16],
      ['--bf16 --use-distributed-optimizer', 6 + 12 / 8],
    ])('counts the bytes per parameter of its documentation with "%s": %d', (options, bytes) => {
      const found = megatron(`${SIZES} ${LENGTHS} ${options}`)
      const parts = (['weights', 'gradients', 'optimizer'] as const).map((name) => component(found, name))
      expect(parts.reduce((sum, { highGiB }) => sum + highGiB, 0)).toBeCloseTo(
        (354_871_296 * bytes) / 2 ** 30,
        2,
      )
    })

    it('counts gates, grouped queries and a layer for the output: Llama 2 with 70 billion', () => {
      const found = megatron(
        '--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000 --seq-length 4096',
      )
      expect(found.modelParams.value).toBe(68_976_648_192)
    })

    it.each([
      ['the vocabulary is in a file', '--num-layers 24 --hidden-size 1024 --num-attention-heads 16'],
      ['experts share the work', `${SIZES} --num-experts 8`],
      ['the command gives no sizes', LENGTHS],
    ])('says nothing if %s', (_, options) => {
      const found = megatron(`${options} ${LENGTHS}`)
      expect([found.modelParams.value, found.memory.value]).toEqual([null, null])
    })

    it('is not sure how GPUs share activations, and says nothing of the run time', () => {
      const found = megatron(`${SIZES} ${LENGTHS} --bf16 --train-iters 100 --tensor-model-parallel-size 2`)
      expect(found.runTime.value).toBeNull()
      expect(found.memory.missing).toContain('how much of the activations the GPUs share')
      expect(found.memory.confidence).toBeLessThanOrEqual(0.4)
    })
  })

  describe('of a program that builds its model of Keras layers', () => {
    const PROGRAM = (model: string): string => `
import keras
from keras import layers
${model}
model.compile(loss="categorical_crossentropy", optimizer="adam")
model.fit(x, y, batch_size=128, epochs=15)
`
    const CONVOLUTIONS = `
model = keras.Sequential([
    keras.Input(shape=(28, 28, 1)),
    layers.Conv2D(32, kernel_size=(3, 3), activation="relu"), layers.MaxPooling2D(pool_size=(2, 2)),
    layers.Conv2D(64, kernel_size=(3, 3), activation="relu"), layers.MaxPooling2D(pool_size=(2, 2)),
    layers.Flatten(), layers.Dropout(0.5), layers.Dense(10, activation="softmax"),
])`
    const RECURRENT = `
inputs = keras.Input(shape=(None,), dtype="int32")
h = layers.Embedding(20000, 128)(inputs)
h = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(h)
h = layers.Bidirectional(layers.LSTM(64))(h)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(h))`

    // Totals that keras.io prints: "Simple MNIST convnet" and "Bidirectional LSTM on IMDB".
    it.each([
      ['convolutions', CONVOLUTIONS, 34_826],
      ['recurrent layers', RECURRENT, 2_757_761],
    ])('counts the parameters that the documentation prints for a model of %s', (_, model, parameters) => {
      const found = findings(PROGRAM(model))
      expect(found.modelParams.value).toBe(parameters)
      expect(component(found, 'weights').lowGiB).toBeCloseTo((parameters * 4) / 2 ** 30, 4)
      expect(component(found, 'optimizer').lowGiB).toBeCloseTo((parameters * 8) / 2 ** 30, 4)
      expect(found.memory.confidence).toBeLessThanOrEqual(0.5)
    })

    it('counts layers of a loop that keep the shape, and not those with an unknown input', () => {
      const loop = (first: string): string => `
h = inputs = keras.Input((8,))
${first}
for _ in range(3):
    h = layers.Dense(4)(h)
model = keras.Model(inputs, h)`
      expect(findings(PROGRAM(loop('h = layers.Dense(4)(h)'))).modelParams.value).toBe(36 + 3 * 20)
      expect(findings(PROGRAM(loop(''))).modelParams.value).toBeNull()
    })

    it.each(['layers.Dense(units())', 'layers.Conv2D(8, 3, data_format="channels_first")', 'layers.Own(4)'])(
      'says nothing with %s',
      (layer) => {
        const found = findings(PROGRAM(`model = keras.Sequential([keras.Input((8, 8, 3)), ${layer}])`))
        expect([found.modelParams.value, found.memory.value]).toEqual([null, null])
      },
    )
  })
})
