import { findAccelerator } from './accelerators'
import { formatRange, isWithin, type MachineShape, type Range, type ResourceRequest } from './resources'

/**
 * Part of N GiB that a machine or card must report to count as "N GB". A label counts in 10^9 bytes or in 2^30 (0.931 of a GiB or 1), and
 * error correction, driver and firmware take up to another 1% (a T4, "16 GB", reports 14.73 GiB; an A10G, "24 GB", 22.35).
 */
export const LABEL_FLOOR = 0.92

/** Type and reported memory of a card; both are missing for a machine without GPUs. */
export type Card = Pick<MachineShape, 'accelerator' | 'gpuMemoryGiB'>

/** A request for memory per GPU. */
export type GpuMemoryRequest = Pick<ResourceRequest, 'gpuMemoryGb' | 'gpuMemoryGiB'>

/** Whether a card's memory is within the requested bounds. */
export function fitsGpuMemory(card: Card, { gpuMemoryGb, gpuMemoryGiB }: GpuMemoryRequest): boolean {
  return isWithin(card.gpuMemoryGiB ?? 0, gpuMemoryGiB) && fitsLabel(card, gpuMemoryGb)
}

/** Whether a card has at least the requested memory. */
export function reachesGpuMemory(card: Card, { gpuMemoryGb, gpuMemoryGiB }: GpuMemoryRequest): boolean {
  return fitsGpuMemory(card, {
    gpuMemoryGb: { min: gpuMemoryGb?.min ?? 0 },
    gpuMemoryGiB: { min: gpuMemoryGiB?.min ?? 0 },
  })
}

/** `has 24 GB, wanted 40 GB+`, in the unit of the request. */
export function gpuMemoryInWords(card: Card, request: GpuMemoryRequest): string {
  const label = labelGb(card)
  const isLabelAsked = request.gpuMemoryGb !== undefined && label !== undefined
  const has = isLabelAsked ? `${label} GB` : `${Math.round((card.gpuMemoryGiB ?? 0) * 10) / 10} GiB`
  return `has ${has}, wanted ${formatGpuMemory(request)!}`
}

/** `24 GB+`, `16 GiB..40 GiB`, or nothing without a request. */
export function formatGpuMemory({ gpuMemoryGb, gpuMemoryGiB }: GpuMemoryRequest): string | undefined {
  const parts = [
    gpuMemoryGb && formatRange(gpuMemoryGb, ' GB'),
    gpuMemoryGiB && formatRange(gpuMemoryGiB, ' GiB'),
  ]
  const words = parts.filter((part) => part !== undefined)
  return words.length === 0 ? undefined : words.join(' and ')
}

/** The memory of one card as a job file asks for it: `24GB` by its label, or `7GiB` as the driver reports. */
export function formatCardMemory(card: Card): string {
  const label = labelGb(card)
  return label === undefined ? `${Math.floor(card.gpuMemoryGiB ?? 0)}GiB` : `${label}GB`
}

/** A known card is compared by its label. An unknown one is compared by its reported memory, with the margin between label and report. */
function fitsLabel(card: Card, wantedGb: Range | undefined): boolean {
  if (wantedGb === undefined) return true
  const label = labelGb(card)
  if (label !== undefined) return isWithin(label, wantedGb)
  return isWithin(card.gpuMemoryGiB ?? 0, {
    min: wantedGb.min === undefined ? undefined : wantedGb.min * LABEL_FLOOR,
    max: wantedGb.max,
  })
}

/**
 * The size on the label of a known card, in GB. A part of a card (a slice, or a share as in `g6f`) has the name of the whole and reports
 * far less, so its label does not count.
 */
function labelGb({ accelerator, gpuMemoryGiB }: Card): number | undefined {
  const known = accelerator === undefined ? undefined : findAccelerator(accelerator)
  if (known === undefined) return undefined
  const isWhole = gpuMemoryGiB === undefined || gpuMemoryGiB >= known.memoryGb * WHOLE_CARD_FLOOR
  return isWhole ? known.memoryGb : undefined
}

/** Below the worst report of a whole card (`LABEL_FLOOR`) and above the largest part that is sold, a half. */
const WHOLE_CARD_FLOOR = 0.9
