import type { MachineType } from '../sdk/api'
import { TYPES_DEFAULT, type Ec2Config } from '../config'
import { MINUTE_MS } from '../../../core/time/time'

type Settings = Pick<Ec2Config, 'types' | 'image' | 'registerWithinMs'>

/**
 * Families with other chips than GPUs (Trainium, Inferentia, Habana, Qualcomm, FPGAs, video). One of them is recognisable only by its name.
 */
const OTHER_CHIPS = /^(?:trn|inf|dl|vt|f)\d/
/** Families with an image of AWS for Neuron ("Neuron DLAMI User Guide": no Inf1). UltraServers (`trn2u`) are for several machines. */
const NEURON = /^(?:inf2|trn1n?|trn2)\./
/** EC2's names of GPUs before Turing, which NVIDIA's open kernel driver does not support. */
const BEFORE_TURING = ['K520', 'K80', 'M60', 'P100', 'V100']
/** Bare metal takes 10 to 20 minutes or more to start. */
const METAL_START_MS = 30 * MINUTE_MS

/**
 * Returns why a type is never bought for any job; `undefined` for a usable one. A type that starts and then lacks something that a job
 * expects would waste money.
 */
export function whyUnusable(type: MachineType, settings: Settings): string | undefined {
  const { name, gpus, hasOtherChips } = type
  if (isNeuron(type)) return whyNotNamed(type, settings)
  if (hasOtherChips || OTHER_CHIPS.test(name))
    return 'its chips are not NVIDIA GPUs: the image has no driver for them'
  const foreign = gpus.find(({ manufacturer }) => !/^nvidia$/i.test(manufacturer))
  if (foreign !== undefined)
    return `its GPUs are from ${foreign.manufacturer}, but the image only has an NVIDIA driver`
  return whyNotDriven(type, settings) ?? whyNotNamed(type, settings)
}

/** Whether the type has chips for AWS Neuron with which jobs can run. */
export function isNeuron({ name, gpus }: Pick<MachineType, 'name' | 'gpus'>): boolean {
  return NEURON.test(name) && gpus.length > 0 && gpus.every(({ manufacturer }) => manufacturer === 'AWS')
}

/** Returns why the driver of AWS's own image does not serve a type; limits of other images are unknown. */
function whyNotDriven({ gpus }: MachineType, { image }: Settings): string | undefined {
  if (!/\boss-nvidia-driver\b/.test(image)) return undefined
  const part = gpus.find((gpu) => gpu.part < 1)
  if (part !== undefined)
    return `its GPU is ${partInWords(part.part)} of an ${part.name}, which takes the GRID driver of NVIDIA: set CRUCIBLE_EC2_IMAGE to an image that has it`
  const old = gpus.find((gpu) => BEFORE_TURING.includes(gpu.name))
  if (old !== undefined)
    return `its ${old.name} is older than Turing, and the image has the open driver of NVIDIA: set CRUCIBLE_EC2_IMAGE to one with the proprietary driver`
  return undefined
}

/** Differences from other machines that a job must ask for, so that a low price alone never selects them. */
function whyNotNamed(
  { name, isBareMetal, architectures }: MachineType,
  settings: Settings,
): string | undefined {
  const { types, registerWithinMs } = settings
  if (isBareMetal && !types.some((pattern) => pattern.includes('metal')))
    return 'it is bare metal, which takes up to half an hour to start: name it in CRUCIBLE_EC2_TYPES'
  if (isBareMetal && registerWithinMs < METAL_START_MS)
    return `it is bare metal, which takes up to half an hour to start: set CRUCIBLE_EC2_REGISTER_WITHIN to 30m or more`
  const isArm = !architectures.includes('x86_64') && architectures.includes('arm64')
  if (isArm && types.every((pattern) => TYPES_DEFAULT.includes(pattern)))
    return `it has an ARM processor, which needs ARM programs and images: to use it, add ${name} to CRUCIBLE_EC2_TYPES`
  return undefined
}

/** `1/8` */
export function partInWords(part: number): string {
  return part >= 1 ? 'all' : `1/${Math.round(1 / part)}`
}
