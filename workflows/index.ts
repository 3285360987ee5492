/** Every workflow type, by the name under which it is started (`WORKFLOW_TYPES`). */
export { attempt } from './attempt'
export { buyCapacity } from './buy-capacity'
export { garbageCollection } from './garbage-collection'
export { job } from './job'
export { reserveCapacity } from './reserve-capacity'
export { retrain } from './retrain'
export { treasury } from './treasury'
