import { beforeAll, describe, expect, it } from '@jest/globals'
import { analyze, type Analysis, type PythonParser } from '../../packages/analyzer/src/analyze'
import { parser } from './corpus'

type Finding = Analysis['findings']['runTime']

interface Work {
  layers: number
  heads: number
  width: number
  vocabulary: number
  block: number
  batch: number
  accumulation: number
  steps: number
}

/** GPT-2 with the sizes and lengths of nanoGPT's configurations. */
const gpt = ({ layers, heads, width, vocabulary, block, batch, accumulation, steps }: Work): string => `
import torch
from transformers import GPT2Config, GPT2LMHeadModel
block_size = ${block}
batch_size = ${batch}
gradient_accumulation_steps = ${accumulation}
max_iters = ${steps}
model = GPT2LMHeadModel(GPT2Config(n_layer=${layers}, n_head=${heads}, n_embd=${width}, vocab_size=${vocabulary})).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for it in range(max_iters):
    for micro_step in range(gradient_accumulation_steps):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=x, labels=x).loss
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
`

describe('the run time finding', () => {
  let python: PythonParser
  const runTime = (text: string, command = 'python train.py'): Finding =>
    analyze(python, {
      files: { list: () => ['train.py'], read: (path) => (path === 'train.py' ? text : undefined) },
      command,
    }).findings.runTime

  beforeAll(async () => {
    python = await parser()
  })

  // nanoGPT's README: 4 days on 8 A100 for 124 million parameters, 3 minutes on one for characters.
  it.each([
    [
      '124 million parameters on 8 GPUs',
      {
        layers: 12,
        heads: 12,
        width: 768,
        vocabulary: 50304,
        block: 1024,
        batch: 12,
        accumulation: 40,
        steps: 600_000,
      },
      'torchrun --nproc_per_node 8 train.py',
      96,
    ],
    [
      'characters on one GPU',
      {
        layers: 6,
        heads: 6,
        width: 384,
        vocabulary: 65,
        block: 256,
        batch: 64,
        accumulation: 1,
        steps: 5_000,
      },
      'python train.py',
      0.05,
    ],
  ])('holds what the author states: %s', (_, work, command, hours) => {
    const { value, missing } = runTime(gpt(work), command)
    expect(missing).toEqual(['a few measured steps'])
    expect(value!.accelerator).toBe('A100')
    expect({ low: value!.lowHours <= hours, high: value!.highHours >= hours }).toEqual({
      low: true,
      high: true,
    })
  })

  it('holds what the author states: textual inversion, 3,000 steps on one V100', () => {
    const { value } = runTime(`
import torch
from accelerate import Accelerator
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel
accelerator = Accelerator(gradient_accumulation_steps=4)
name = "CompVis/stable-diffusion-v1-4"
text_encoder = CLIPTextModel.from_pretrained(name, subfolder="text_encoder")
vae = AutoencoderKL.from_pretrained(name, subfolder="vae")
unet = UNet2DConditionModel.from_pretrained(name, subfolder="unet")
vae.requires_grad_(False)
unet.requires_grad_(False)
optimizer = torch.optim.AdamW(text_encoder.get_input_embeddings().parameters(), lr=5e-4)
resolution = 512
loader = torch.utils.data.DataLoader(pictures, batch_size=1)
for step in range(3000):
    batch = next(loader)
    loss = loss_of(unet(batch, text_encoder(batch)))
    accelerator.backward(loss)
    optimizer.step()
`)
    // About an hour on a V100, whose training speed is 0.25 to 0.81 of an A100 (core/accelerator-speeds.ts).
    expect(value!.lowHours).toBeLessThan(0.81)
    expect(value!.highHours).toBeGreaterThan(0.25)
  })

  const VISION = (data: string): string => `
import torch, torchvision
model = torchvision.models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = torch.utils.data.DataLoader(${data}, batch_size=256)
for epoch in range(90):
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
`

  it('counts epochs over a data set of known size', () => {
    // 1,396 pictures a second on an A100-PCIe (Lambda's benchmark, as in core/accelerator-speeds.ts) make 22.9 hours.
    const { value } = runTime(VISION('torchvision.datasets.ImageNet("data")'))
    expect(value).toMatchObject({ class: 'hours', accelerator: 'A100', gpus: 1 })
    expect(value!.lowHours).toBeLessThan(22.9)
    expect(value!.highHours).toBeGreaterThan(22.9)
  })

  it('says nothing of data of unknown size', () => {
    const { value, missing } = runTime(VISION('my_data()'))
    expect(value).toBeNull()
    expect(missing).toEqual(['the number of steps, or of epochs and samples'])
  })
})
