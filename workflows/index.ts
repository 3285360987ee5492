/** Every workflow type, by the name under which it is started (`WORKFLOW_TYPES`). */
export { attempt } from './attempt'
export { garbageCollection } from './garbage-collection'
export { job } from './job'
export { treasury } from './treasury'
