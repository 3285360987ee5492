import { beforeAll, describe, expect, it } from '@jest/globals'
import { analyze, type Analysis, type PythonParser } from '../../packages/analyzer/src/analyze'
import { parser } from './corpus'

type Finding = Analysis['findings']['workFamily']

/** A loop around a model, in mixed precision where `autocast` is given. */
const training = (model: string, { autocast = '', batch = 256 } = {}): string => `
import torch, torchvision, tensorflow_datasets
${model}
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torchvision.datasets.ImageNet("data"), batch_size=${batch})
for x, y in loader:
    with ${autocast === '' ? 'torch.enable_grad()' : autocast}:
        loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
`
const MIXED = { autocast: 'torch.autocast("cuda", dtype=torch.bfloat16)' }
const RESNET = 'model = torchvision.models.resnet50()'
const GPT2 =
  'from transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained("gpt2")'
const LSTM = 'model = torch.nn.LSTM(1024, 2048, num_layers=4)'

describe('the family of work', () => {
  let python: PythonParser
  const familyOf = (text: string): Finding =>
    analyze(python, {
      files: { list: () => ['train.py'], read: (path) => (path === 'train.py' ? text : undefined) },
      command: 'python train.py',
    }).findings.workFamily

  beforeAll(async () => {
    python = await parser()
  })

  it.each([
    ['a convolutional network', RESNET, 'convolution'],
    ['a transformer', GPT2, 'transformer'],
  ])('of %s in mixed precision is its own', (_, model, family) => {
    const { value, confidence, evidence } = familyOf(training(model, MIXED))
    expect(value).toBe(family)
    expect(confidence).toBeGreaterThanOrEqual(0.9)
    expect(evidence.length).toBeGreaterThan(0)
  })

  it('is fp32 where that means TF32: in convolutions, and if the program says so', () => {
    expect(familyOf(training(RESNET)).value).toBe('fp32')
    expect(familyOf(training(`torch.set_float32_matmul_precision("high")\n${GPT2}`)).value).toBe('fp32')
    expect(familyOf(training(GPT2))).toMatchObject({
      value: null,
      missing: ['training in fp32 without TF32 was not measured'],
    })
  })

  it('is unknown for several kinds of models, and for none that shows', () => {
    expect(familyOf(training(`${RESNET}\nhead = torch.nn.LSTM(1024, 2048)`, MIXED)).value).toBeNull()
    expect(familyOf(training('model = torch.nn.Linear(9000, 9000)', MIXED)).value).toBeNull()
  })

  it('is unsure for a network of its own layers, whose size nothing shows', () => {
    expect(familyOf(training(LSTM, MIXED))).toMatchObject({ value: 'recurrent', confidence: 0.6 })
  })

  it('is unknown for steps too small to keep a GPU busy', () => {
    const { value, missing } = familyOf(training(RESNET, { ...MIXED, batch: 2 }))
    expect({ value, missing }).toEqual({
      value: null,
      missing: ['its steps are too small to keep a GPU busy'],
    })
  })
})
