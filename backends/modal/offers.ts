import { MICRO_USD_PER_USD } from '../../core/money/money'
import type { Offer, PriceSource } from '../../core/offer'
import type { MachineShape, Range, ResourceRequest } from '../../core/resources'
import { HOUR_MS } from '../../core/time/time'
import type { OffersContext } from '../backend'
import { BackendError } from '../errors'
import { fitting } from '../fitting'
import type { ModalConfig } from './config'
import type { Rates } from './documents'
import { gpuRequest, mayBeLarger, MODAL_GPUS, type ModalGpu } from './gpus'
import type { Host } from './host'
import { imageRefusal, versionProblem } from './policy'

export const BACKEND = 'modal'

/** vCPUs per core: one of Modal's cores is a physical one (modal.com/docs/guide/resources, read in November 2026). */
const VCPUS_PER_CORE = 2
/** The most of one Sandbox (same page). */
const VCPUS_MAX = 128
const MEMORY_GIB_MAX = 336
/** The disk quota of every container; Sandboxes have no parameter for another one. */
const DISK_GIB = 512
const MIB_PER_GIB = 1024
/** Default machine, and the least addition for each GPU: Modal bills the reservation. */
const LEAST = { cpus: 2, memoryGiB: 4 }
const PER_GPU = { cpus: 4, memoryGiB: 16 }

/** Names of CPU rates. Sandboxes cost more than Functions; older workspaces may report no separate rates for them. */
const CPU_RATES = ['cpu_hour_cost_sandbox', 'cpu_hour_cost']
const MEMORY_RATES = ['mem_gib_hour_cost_sandbox', 'mem_gib_hour_cost']

const PREEMPTED = 'Modal may take machines with a GPU back without notice'
const UPGRADED = 'Modal may give a larger GPU at the same price'

interface Kind {
  gpu?: ModalGpu
  count: number
}

/** Returns machines cut to the request, without and with each GPU, at the workspace's own rates. */
export async function offers(
  { api, config, deps }: Host,
  request: ResourceRequest,
  { signal, image }: OffersContext,
): Promise<Offer[]> {
  const [health, rates] = await Promise.all([api.health(signal), api.rates(signal)])
  const outdated = versionProblem(health)
  // A job waits for another gateway, or runs elsewhere; a refused launch would end it.
  if (outdated !== undefined) throw new BackendError(outdated)
  const refusal = imageRefusal(health, config.imageSecrets, image)
  const priceSource = priceSourceOf(rates, deps.clock())
  const priced = kindsOf(config).filter(({ gpu }) => gpu === undefined || rates.usd[gpu.rate] !== undefined)
  return fitting(priced, (kind) => shapeOf(kind, request), request).map((kind): Offer => {
    const shape = shapeOf(kind, request)
    const { gpu, count } = kind
    return {
      backend: BACKEND,
      capacityType: 'on-demand',
      type: typeOf(kind),
      place: '',
      shape,
      isolation: 'shared',
      availability: 'unknown',
      runMsMax: config.runMsMax,
      priceMicroUsdPerHour: priceOf(kind, shape, rates),
      priceSource,
      ...(gpu === undefined
        ? {}
        : { isPreemptible: true, note: mayBeLarger(gpu, request) ? `${PREEMPTED}. ${UPGRADED}` : PREEMPTED }),
      ...(refusal !== undefined && { availability: 'unusable', note: refusal }),
      data: {
        cores: String(shape.cpus / VCPUS_PER_CORE),
        memoryMiB: String(shape.memoryGiB * MIB_PER_GIB),
        ...(gpu === undefined ? {} : { gpu: gpuRequest(gpu, count, mayBeLarger(gpu, request)) }),
      },
    }
  })
}

/** Returns the source of prices. If Modal does not give the gateway its rates, they are those of the gateway's deployment. */
function priceSourceOf({ observed_at_ms: observedAtMs }: Rates, nowMs: number): PriceSource {
  return nowMs - observedAtMs < HOUR_MS
    ? { kind: 'live', observedAtMs: nowMs }
    : { kind: 'static', observedAtMs }
}

function kindsOf({ gpus }: ModalConfig): Kind[] {
  const offered = MODAL_GPUS.filter(({ name }) => gpus.includes(name))
  const counts = [1, 2, 4, 8]
  return [
    { count: 0 },
    ...offered.flatMap((gpu) =>
      counts.filter((count) => count <= gpu.countMax).map((count) => ({ gpu, count })),
    ),
  ]
}

function typeOf({ gpu, count }: Kind): string {
  return gpu === undefined ? 'cpu' : `${gpu.name}x${count}`
}

function shapeOf({ gpu, count }: Kind, { cpus, memoryGiB }: ResourceRequest): MachineShape {
  const size = (wanted: Range | undefined, usual: number, max: number): number => {
    const chosen = Math.max(wanted?.min ?? 0, Math.min(usual, wanted?.max ?? Infinity))
    return Math.min(max, Math.max(1, Math.ceil(chosen)))
  }
  const usual = (of: keyof typeof LEAST): number => Math.max(LEAST[of], count * PER_GPU[of])
  return {
    cpus: size(cpus, usual('cpus'), VCPUS_MAX),
    memoryGiB: size(memoryGiB, usual('memoryGiB'), MEMORY_GIB_MAX),
    diskGiB: DISK_GIB,
    gpus: count,
    ...(gpu === undefined ? {} : { accelerator: gpu.accelerator, gpuMemoryGiB: gpu.memoryGiB }),
  }
}

function priceOf({ gpu, count }: Kind, { cpus, memoryGiB }: MachineShape, rates: Rates): number {
  const usd =
    (cpus / VCPUS_PER_CORE) * rateOf(rates, CPU_RATES) +
    memoryGiB * rateOf(rates, MEMORY_RATES) +
    (gpu === undefined ? 0 : count * rateOf(rates, [gpu.rate]))
  return Math.ceil(usd * MICRO_USD_PER_USD)
}

function rateOf({ usd }: Rates, names: string[]): number {
  const text = names.map((name) => usd[name]).find((one) => one !== undefined)
  const rate = Number(text ?? NaN)
  if (Number.isFinite(rate) && rate >= 0) return rate
  throw new BackendError({
    class: 'unclassified',
    message: `the workspace reports no rate ${names.join(' or ')}`,
    hint: 'Modal may have renamed its rates. Update Crucible, or report this.',
  })
}
