# SPDX-License-Identifier: Apache-2.0
# TensorFlow: two epochs of Keras's fit on the CPU.
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
net = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="tanh"), tf.keras.layers.Dense(1)])
net.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mse")
x, y = tf.random.normal((32, 8)), tf.random.normal((32, 1))
losses = net.fit(x, y, epochs=2, batch_size=32, verbose=0).history["loss"]
assert losses[1] < losses[0], losses
print("step: losses %.6f %.6f, devices %s" % (*losses, [d.device_type for d in tf.config.list_physical_devices()]))
