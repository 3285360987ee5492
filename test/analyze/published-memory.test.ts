/**
 * Scripts that train published models, whose memory is known: measured on a GPU (`published/measure_gpu.py`), or stated by the authors of
 * huggingface/diffusers in the README files of `examples/`, read 2026-11-25. The scripts are our own, with the models, options and defaults of theirs.
 */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { analyze, type Analysis, type PythonParser } from '../../packages/analyzer/src/analyze'
import { filesOf, parser } from './corpus'

type Memory = Analysis['findings']['memory']

const GIB = 2 ** 30
const GB = 1e9
const FOLDER = join(__dirname, 'published')

/** Sizes of common cards in GB, as on their labels. */
const CARDS = [8, 12, 16, 24, 32, 40, 48, 80]

/** The smallest common card that has so much memory. */
const cardFor = (gib: number): number => CARDS.find((gb) => gb * GB >= gib * GIB) ?? Infinity

/** Bytes of tensors, of the allocator and of the whole process. */
interface Measured {
  bytes: Record<string, Record<'allocatedPeak' | 'reserved' | 'process', number>>
}

const measured = JSON.parse(readFileSync(join(FOLDER, 'measured-gpu.json'), 'utf8')) as Measured

/** What a script fits into: its tensors, CUDA and the libraries; the allocator gives up the rest of what it reserved. */
const ON_GPU = Object.entries(measured.bytes).map(
  ([name, { allocatedPeak, reserved, process }]) =>
    [name, (allocatedPeak + process - reserved) / GIB] as const,
)

const MODEL = '--pretrained_model_name_or_path CompVis/stable-diffusion-v1-4'
const DATA = '--dataset_name pictures/captions --resolution 512'
const DREAM = `${MODEL} --instance_data_dir pictures --with_prior_preservation --resolution 512 --train_batch_size 1`
const CONTROL = `controlnet.py --pretrained_model_name_or_path runwayml/stable-diffusion-v1-5 ${DATA}`
const SMALL_CONTROL = `${CONTROL} --train_batch_size 1 --gradient_accumulation_steps 4`
const LEAN = '--gradient_checkpointing --use_8bit_adam'
const LEANER = '--enable_xformers_memory_efficient_attention --set_grads_to_none'

/** The card that the authors name, in GB. */
const STATED: readonly (readonly [what: string, cardGb: number, command: string])[] = [
  [
    'text to image',
    24,
    `accelerate launch --mixed_precision fp16 text_to_image.py ${MODEL} ${DATA} --use_ema --train_batch_size 1 --gradient_accumulation_steps 4 --gradient_checkpointing`,
  ],
  ['text to image in Flax', 32, `python text_to_image_flax.py ${MODEL} ${DATA} --train_batch_size 1`],
  [
    'DreamBooth with checkpointing and 8-bit Adam',
    16,
    `accelerate launch dreambooth.py ${DREAM} --gradient_accumulation_steps 2 ${LEAN}`,
  ],
  ['the same with xFormers', 12, `accelerate launch dreambooth.py ${DREAM} ${LEAN} ${LEANER}`],
  [
    'DreamBooth with DeepSpeed and offload',
    8,
    `accelerate launch --config_file offload.yaml dreambooth.py ${DREAM} --mixed_precision fp16 --gradient_checkpointing`,
  ],
  [
    'DreamBooth with the text encoder',
    24,
    `accelerate launch dreambooth.py ${DREAM} --train_text_encoder ${LEAN}`,
  ],
  ['ControlNet of batch 4', 40, `accelerate launch ${CONTROL} --train_batch_size 4`],
  ['ControlNet of batch 1', 24, `accelerate launch ${SMALL_CONTROL}`],
  ['ControlNet with checkpointing and 8-bit Adam', 16, `accelerate launch ${SMALL_CONTROL} ${LEAN}`],
  ['ControlNet with xFormers', 12, `accelerate launch ${SMALL_CONTROL} ${LEAN} ${LEANER}`],
]

describe('the memory range of a published model', () => {
  let python: PythonParser
  const memoryOf = (folder: string, command: string): Memory =>
    analyze(python, { files: filesOf(join(FOLDER, folder)), command }).findings.memory

  beforeAll(async () => {
    python = await parser()
  })

  it.each(ON_GPU)('holds what %s needed of a GPU: %d GiB', (name, gib) => {
    const { value } = memoryOf('gpu', `python ${name}`)
    expect(value!.lowGiB).toBeLessThanOrEqual(gib)
    expect(value!.highGiB).toBeGreaterThanOrEqual(gib)
  })

  it.each(STATED)(
    'chooses no card for %s that is smaller than the authors name: %d GB',
    (_, cardGb, command) => {
      const { value } = memoryOf('statements', command)
      expect(cardFor(value!.highGiB)).toBeGreaterThanOrEqual(cardGb)
      expect(value!.lowGiB * GIB).toBeLessThanOrEqual(cardGb * GB)
    },
  )

  it('chooses a larger card than the authors in at most four cases', () => {
    const larger = STATED.filter(
      ([, cardGb, command]) => cardFor(memoryOf('statements', command).value!.highGiB) > cardGb,
    )
    expect(larger.length).toBeLessThanOrEqual(4)
  })
})
