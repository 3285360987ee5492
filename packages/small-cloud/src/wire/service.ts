/** What a service is to the wire: its way of writing, and its actions. */
import type { z } from 'zod'
import type { Principal } from '../identity/identities'
import type { Wish } from '../identity/policy'
import type { Style } from './errors'

export type ServiceName = 'ec2' | 'ssm' | 'sts' | 'iam' | 'ecr' | 'pricing' | 'servicequotas' | 'freetier'

/** The surroundings of a call. */
export interface Call {
  service: ServiceName
  action: string
  region: string
  principal: Principal
  requestId: string
}

export interface Action {
  input: z.ZodType
  /** Changes something. */
  isMutating: boolean
  /** What a dry run checks beside permission and form. */
  check?: (input: never, call: Call) => void
  run: (input: never, call: Call) => unknown
}

interface Definition<S extends z.ZodType> {
  input: S
  isMutating?: boolean
  check?: (input: z.output<S>, call: Call) => void
  run: (input: z.output<S>, call: Call) => unknown
}

/** An action whose handler gets what its fields say. */
export function action<S extends z.ZodType>({
  input,
  isMutating = false,
  check,
  run,
}: Definition<S>): Action {
  return { input, isMutating, run, ...(check === undefined ? {} : { check }) }
}

export interface Service {
  /** The name that requests are signed for. */
  name: ServiceName
  style: Style
  /** XML namespace, or what stands before the action in `X-Amz-Target`. */
  namespace: string
  actions: Readonly<Record<string, Action>>
  /** What must be allowed beside the action by its name. */
  wishes?: (input: Readonly<Record<string, unknown>>, call: Call) => Wish[]
}
