/** The wire description of a service: its format and its actions. */
import type { z } from 'zod'
import type { Principal } from '../identity/identities'
import type { AuthorizationRequest } from '../identity/policy'
import type { Style } from './errors'

export type ServiceName = 'ec2' | 'ssm' | 'sts' | 'iam' | 'ecr' | 'pricing' | 'servicequotas' | 'freetier'

/** The context of a call. */
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
  /** Checks of a dry run in addition to permission and form. */
  check?: (input: never, call: Call) => void
  run: (input: never, call: Call) => unknown
}

interface Definition<S extends z.ZodType> {
  input: S
  isMutating?: boolean
  check?: (input: z.output<S>, call: Call) => void
  run: (input: z.output<S>, call: Call) => unknown
}

/** Defines an action whose handler gets the type of its fields. */
export function action<S extends z.ZodType>({
  input,
  isMutating = false,
  check,
  run,
}: Definition<S>): Action {
  return { input, isMutating, run, ...(check === undefined ? {} : { check }) }
}

export interface Service {
  /** The name in request signatures. */
  name: ServiceName
  style: Style
  /** XML namespace, or the prefix of the action in `X-Amz-Target`. */
  namespace: string
  actions: Readonly<Record<string, Action>>
  /** Permissions that a call needs in addition to its action name. */
  wishes?: (input: Readonly<Record<string, unknown>>, call: Call) => AuthorizationRequest[]
}
